/** Worlds that a test file leaves to be closed at its end. */
interface Closable {
  close(): Promise<void>
}

const open = new Set<Closable>()

/** Has a world closed at the end of the test file. Closing it earlier is possible. */
export function closeAtEnd(world: Closable): void {
  open.add(world)
}

/** Leaves the closing to the test. */
export function closedByTest(world: Closable): void {
  open.delete(world)
}

export async function closeOpenWorlds(): Promise<void> {
  for (const world of open) await world.close()
  open.clear()
}
