// pawl.d.mts - the types of pawl.mjs.
export * from "./pawl.cjs";
