/** Opens the targets of each kind, by which the daemon and `deferd webhook test` send events. */
import { targetKind, type TargetKind } from '../config/values/tables/event-tables.ts'
import { sendToFile, sendToStream } from './file-target.ts'
import type { SendEvents } from './target.ts'
import { webTarget } from './web-target.ts'

type TargetPorts = Parameters<typeof webTarget>[0] & {
  /** Writes to standard output. Resolves when the text is taken. */
  readonly write: (text: string) => Promise<void>
}

/** Sends events to the target that their settings name. `close` ends the connections that are kept. */
export function openTargets({ write, ...ports }: TargetPorts): { readonly send: SendEvents; readonly close: () => void } {
  const web = webTarget(ports)
  const senders: Readonly<Record<TargetKind, SendEvents>> = {
    // Settings without a target are not sent; see obstacleTo.
    none: web.send,
    stdout: sendToStream(write),
    file: sendToFile,
    web: web.send,
  }
  return { send: (consignment) => senders[targetKind(consignment.settings.to)](consignment), close: () => web.close() }
}
