"""What tests share: small models, and running them."""
