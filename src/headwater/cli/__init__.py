"""The command line: thin. A verb parses its arguments, calls the library and prints."""
