"""Reading memory ahead: `prefetch`, which only the compiled half can do, is in the declarations beside this file."""
