"""What conversions replaced, remembered in the model and put back."""
