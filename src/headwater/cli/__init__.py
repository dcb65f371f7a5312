"""The command line: a thin layer. A verb parses its arguments, calls the library and prints."""
