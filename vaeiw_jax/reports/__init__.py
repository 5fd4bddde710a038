"""Every page, table, picture and card the project shows."""
