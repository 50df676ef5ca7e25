/** Resolves after one turn of the event loop, in which all callbacks that were ready have run. */
export const eventLoopTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
