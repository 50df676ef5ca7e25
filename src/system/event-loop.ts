/** Turns of the event loop. */

/** Duration in ms of a turn in which no callback ran, at most: looking for events takes a tenth of that. */
const QUIET = 0.03

/** Resolves after one turn of the event loop, in which all callbacks that were ready have run. */
export const eventLoopTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/**
 * Resolves after the first turn of the event loop, from the next one on, in which no callback ran, and at the latest after `most` turns.
 * That is at once when the process has nothing else to do.
 */
export function quietTurn(most: number): Promise<void> {
  return new Promise((resolve) => {
    let [turns, began] = [0, 0]
    const turn = (): void => {
      const now = performance.now()
      turns++
      if (turns === most || (turns > 1 && now - began < QUIET)) return resolve()
      began = now
      setImmediate(turn)
    }
    setImmediate(turn)
  })
}
