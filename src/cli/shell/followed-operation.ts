/** Follows an operation that the daemon carries out, with its progress on the terminal. */
import type { OperationJson } from '../../resources/operation-json.ts'
import { SECOND, sleep } from '../../system/clock.ts'
import { countText, ProgressLine } from './progress.ts'
import type { QueueClient } from './queue-client.ts'
import type { Shell } from './shell.ts'

/** Resolves with the operation when it has ended. `total` is null when the number of its messages is not known. */
export async function followed(
  shell: Shell,
  client: Pick<QueueClient, 'operation'>,
  begun: OperationJson,
  { doing, total }: { readonly doing: string; readonly total: number | null },
): Promise<OperationJson> {
  const line = new ProgressLine(shell.stderr, shell.clock)
  let operation = begun
  try {
    while (operation.state === 'running') {
      line.show(countText(doing, operation.changed, total))
      await sleep(shell.clock, SECOND)
      operation = await client.operation(operation.id)
    }
    return operation
  } finally {
    await line.finish()
  }
}
