/** Style sheets, which the bundler takes out of the modules that import them. */
declare module "*.css";
