/**
 * Outputs of deferd over one queue in virtual time, which are equal in all runs of one commit: commands, answers of the API, screens, log,
 * metrics and notices. Those of two commits show what a change of the code changes for its users (write-outputs.ts).
 */
import { apiOutputs } from './api-outputs.ts'
import { commandOutputs } from './command-outputs.ts'
import { filledWorld } from './filled-world.ts'
import { pageOutputs } from './page-outputs.ts'
import { pictureOutputs } from './picture-outputs.ts'
import { recordOutputs } from './record-outputs.ts'

/** Keeps an output. Throws when there is one of the name already. */
export type Collect = (name: string, text: string) => void

/** Ids of requests without one from the client, and new tokens: they are random. */
const UUID = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g
const SECRET = /\bdfd_[\w-]{20,}/g

/** Outputs by name, such as `commands/80/queue list`. Pictures of the screens are taken only when `keepPicture` gets them. */
export async function collectOutputs(keepPicture?: (name: string, png: Uint8Array) => void): Promise<ReadonlyMap<string, string>> {
  const outputs = new Map<string, string>()
  const collect: Collect = (name, text) => {
    if (outputs.has(name)) throw new Error(`there are two outputs ${name}`)
    outputs.set(name, text.replaceAll(UUID, 'REQUEST').replaceAll(SECRET, 'SECRET'))
  }
  const filled = await filledWorld()
  try {
    await recordOutputs(filled, collect)
    await pageOutputs(filled, collect)
    if (keepPicture !== undefined) await pictureOutputs(filled, keepPicture)
    await apiOutputs(filled, collect)
    // Last, since some commands change the queue.
    await commandOutputs(filled, collect)
  } finally {
    await filled.world.close()
  }
  return outputs
}
