/** One turn of the event loop of this process: everything that was ready before has run when it resolves. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
