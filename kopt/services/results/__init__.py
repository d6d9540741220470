"""What commands give as data: the models of their JSON that are not the domain's own."""
