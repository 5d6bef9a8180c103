"""The custom domain com.acme: definitions, adapters and kernels."""
