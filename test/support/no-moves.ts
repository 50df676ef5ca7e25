/** Moves of a control server that is not asked for any. */
export const NO_MOVES = { perform: () => Promise.reject(new Error('no move is expected')) }
