create schema penstock
