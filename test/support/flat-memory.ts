/** Shows that something can be done for ever: what it takes does not grow with how often it was done. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'vitest'

/** What is left after a full collection, and what the system has given, in MB. */
interface Memory {
  readonly heap: number
  readonly rss: number
}

const MB = 1024 * 1024
/** What the last half may take more than the first did. */
const GROWTH: Memory = { heap: 8, rss: 48 }

function collector(): () => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as () => void
}

/** Does it so many times, and reports how long that took and what memory was in use after each time. */
export async function inFlatMemory(what: string, times: number, work: (time: number) => Promise<void>): Promise<void> {
  const collect = collector()
  const used: Memory[] = []
  const start = performance.now()
  for (let time = 0; time < times; time++) {
    await work(time)
    collect()
    const { heapUsed, rss } = process.memoryUsage()
    used.push({ heap: heapUsed / MB, rss: rss / MB })
  }
  const seconds = (performance.now() - start) / 1000
  const shown = used.map(({ heap, rss }) => `${heap.toFixed(0)}/${rss.toFixed(0)}`).join(' ')
  console.log(`${what}: ${seconds.toFixed(1)} s, heap/RSS in MB: ${shown}`)
  for (const kind of ['heap', 'rss'] as const) {
    // Growth stays; what the end of one round still holds on to, when it is measured, is gone after the next.
    const median = (part: readonly Memory[]): number => part.map((memory) => memory[kind]).toSorted((a, b) => a - b)[part.length >> 1] ?? 0
    expect(median(used.slice(times / 2)) - median(used.slice(0, times / 2)), kind).toBeLessThan(GROWTH[kind])
  }
}
