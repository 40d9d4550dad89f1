"`python -m annotated_transformer` is the command `annotated-transformer`."

from annotated_transformer.cli import main

if __name__ == "__main__":
    main()
