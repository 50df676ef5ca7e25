/**
 * `postqueue` and `mailq`, as Postfix users know them.
 */
import type { LoadedConfig } from '../../config/load.ts'
import { parseQueueId } from '../../mail/queue-id.ts'
import type { ListedMessage, QueueFilter, QueueName, QueueReader } from '../../queue/reader.ts'
import { loadShellConfig } from '../command.ts'
import { getopt } from '../getopt.ts'
import { listing } from '../listing.ts'
import { pages } from '../page-reader.ts'
import { CommandError, EX, type Shell } from '../shell.ts'
import { EMPTY, footer, HEADING, showqMessage } from '../showq.ts'
import { recordsByName } from '../standing.ts'

/** Queues in the order in which Postfix lists them. */
const ORDER: readonly QueueName[] = ['active', 'incoming', 'deferred', 'hold']

function* everything(reader: QueueReader, now: number): Generator<readonly ListedMessage[]> {
  for (const queue of ORDER) yield* pages(reader, { filter: { queue }, now })
}

async function withReader(shell: Shell, { config }: LoadedConfig, use: (reader: QueueReader) => Promise<void>): Promise<void> {
  const reader = await shell.openReader(config)
  try {
    await use(reader)
  } finally {
    reader.close()
  }
}

/** `postqueue -p` */
export const printQueue = (shell: Shell, loaded: LoadedConfig): Promise<void> =>
  withReader(shell, loaded, async (reader) => {
    const records = recordsByName(reader.destinationRecords())
    let bytes = 0
    let messages = 0
    for (const page of everything(reader, shell.clock.now())) {
      let text = ''
      for (const listed of page) {
        text += messages++ === 0 ? HEADING : '\n'
        text += showqMessage(listed, records, shell.clock)
        bytes += listed.message.size
      }
      await shell.stdout.write(text)
    }
    await shell.stdout.write(messages === 0 ? EMPTY : footer(bytes, messages))
  })

/** `postqueue -j` */
const printJson = (shell: Shell, loaded: LoadedConfig): Promise<void> =>
  withReader(shell, loaded, async (reader) => {
    const now = shell.clock.now()
    for (const queue of ORDER) {
      const order = { filter: { queue }, now, json: true, columns: null }
      for await (const { lines } of listing(reader, loaded.config.queue_directory, order)) await shell.stdout.write(lines)
    }
  })

async function flush(
  shell: Shell,
  { config }: LoadedConfig,
  selection: { id: string } | { filter: QueueFilter },
  words: string,
): Promise<void> {
  const desk = await shell.openDesk(config)
  try {
    await desk.perform({
      operation: 'flush',
      selection: 'id' in selection ? { kind: 'ids', ids: [selection.id] } : { kind: 'filter', filter: selection.filter },
      who: shell.user,
      words,
    })
  } finally {
    await desk.close()
  }
}

export const flushAll = (shell: Shell, loaded: LoadedConfig): Promise<void> => flush(shell, loaded, { filter: {} }, '--all')

/** An id nobody knows is no error, as in Postfix. */
export async function flushMessage(shell: Shell, loaded: LoadedConfig, id: string): Promise<void> {
  if (!/^\w+$/.test(id)) throw new CommandError(EX.usage, 'invalid queue id')
  if (parseQueueId(id) !== undefined) await flush(shell, loaded, { id }, id)
}

/** Every domain can be flushed: mail is found by where it goes, so no list of eligible ones is needed. */
export async function flushSite(shell: Shell, loaded: LoadedConfig, site: string): Promise<void> {
  if (!/^(?:[\w-]+(?:\.[\w-]+)*\.?|\[[\w.:]+\])$/.test(site))
    throw new CommandError(EX.usage, 'invalid site: give a host name or [address]')
  await flush(shell, loaded, { filter: { recipient: `*@${site.toLowerCase().replace(/\.$/, '')}` } }, `--recipient=*@${site}`)
}

const USAGE = 'usage: postqueue -f | postqueue -i queue_id | postqueue -j | postqueue -p | postqueue -s site (and -c FILE, -o name=value)'

export async function postqueue(shell: Shell, args: readonly string[]): Promise<void> {
  const { options, operands } = getopt('postqueue', args, 'c:fi:jo:ps:v')
  const modes = options.filter(({ name }) => 'fijps'.includes(name))
  const [mode] = modes
  if (mode === undefined || modes.length > 1 || operands.length > 0) throw new CommandError(EX.usage, USAGE)
  const loaded = await configFor(shell, 'postqueue', options)
  switch (mode.name) {
    case 'p':
      return printQueue(shell, loaded)
    case 'j':
      return printJson(shell, loaded)
    case 'f':
      return flushAll(shell, loaded)
    case 'i':
      return flushMessage(shell, loaded, mode.value)
    default:
      return flushSite(shell, loaded, mode.value)
  }
}

/** The configuration of a tool that takes `-c FILE` (Postfix's letter), `--config FILE` and `-o name=value`. */
export function configFor(
  shell: Shell,
  tool: string,
  options: readonly { readonly name: string; readonly value: string }[],
): Promise<LoadedConfig> {
  const file = options.findLast(({ name }) => name === 'config' || name === 'c')?.value
  const overrides = options.filter(({ name }) => name === 'o').map(({ value }) => value)
  return loadShellConfig(shell, { file, overrides, calledAs: tool })
}
