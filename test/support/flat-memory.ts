/** Checks that the memory of the process does not grow with the number of repetitions of an action. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'vitest'

/** Heap after a full garbage collection, and resident memory, in MB. */
interface Memory {
  readonly heap: number
  readonly rss: number
}

const MB = 1024 * 1024
/** Maximum growth of the median from the first half of the repetitions to the second, in MB. */
const GROWTH: Memory = { heap: 8, rss: 48 }

/** Returns a function that frees all memory without references. */
export function collector(): () => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as () => void
}

/** Repeats an action, and prints the duration and the memory in use after each repetition. Fails when the memory grows. */
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
    // Growth is permanent; memory that is still referenced at the end of one round is free after the next.
    const median = (part: readonly Memory[]): number => part.map((memory) => memory[kind]).toSorted((a, b) => a - b)[part.length >> 1] ?? 0
    expect(median(used.slice(times / 2)) - median(used.slice(0, times / 2)), kind).toBeLessThan(GROWTH[kind])
  }
}
