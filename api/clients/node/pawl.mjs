// pawl.mjs - pawl.cjs as an ES module.
export { Pawl, Hold, Session, PawlError, PawlHeld, PawlLost, PawlNotDone, PawlUnknown } from "./pawl.cjs";
