/** `postqueue` and `mailq` with Postfix's options and output (postqueue(1)). */
import type { LoadedConfig } from '../../config/load.ts'
import { parseQueueId } from '../../mail/queue-id.ts'
import { submissions } from '../../queue/intake/maildrop-listing.ts'
import type { ListedMessage, QueueReader } from '../../store/queue-reader.ts'
import { ANY_QUEUE } from '../../queue/operation-request.ts'
import { ANY_MESSAGE } from '../../store/message-conditions.ts'
import { loadShellConfig } from '../shell/config-options.ts'
import { getopt } from './getopt.ts'
import { passedOverTexts } from '../../presentation/passed-over.ts'
import { maildropParts } from '../queue-client/maildrop-parts.ts'
import { folderOf } from '../queue-client/queue-access.ts'
import { listing } from '../queue-client/queue-listing.ts'
import { pages } from '../../queue/list-pages.ts'
import type { GivenSelection } from '../shell/queue-client.ts'
import { CommandError, EX } from '../shell/exit.ts'
import { withReader, type OpenedReader, type Shell } from '../shell/shell.ts'
import { EMPTY, footer, HEADING, showqMessage, showqSubmission } from './showq.ts'
import { isFlushable } from '../../smtpd/dialogue/etrn-policy.ts'
import { recordsByName } from '../../presentation/recipient-status.ts'
import type { QueueName } from '../../mail/message.ts'

/** Queues in the order of Postfix's listing. The maildrop is listed before them. */
const ORDER: readonly QueueName[] = ['active', 'incoming', 'deferred', 'scheduled', 'hold']

async function* everything(reader: QueueReader): AsyncGenerator<readonly ListedMessage[]> {
  for (const queue of ORDER) yield* pages(reader, { filter: { ...ANY_MESSAGE, queue } })
}

interface ShowqEntry {
  readonly text: string
  readonly size: number
}

/** Formatted entries in Postfix's order, in batches. */
async function* showqEntries({ reader, clock }: OpenedReader, directory: string): AsyncGenerator<readonly ShowqEntry[]> {
  const records = recordsByName(await reader.destinationRecords())
  for await (const batch of submissions(directory, ANY_MESSAGE, clock.wall)) {
    yield batch.map((submission) => ({ text: showqSubmission(submission, clock), size: submission.size }))
  }
  for await (const page of everything(reader)) {
    yield page.map((listed) => ({ text: showqMessage(listed, records, clock), size: listed.message.size }))
  }
}

/** `postqueue -p` */
export const printQueue = (shell: Shell, loaded: LoadedConfig): Promise<void> =>
  withReader(shell, loaded.config, async (opened) => {
    let bytes = 0
    let messages = 0
    for await (const entries of showqEntries(opened, loaded.config.queue_directory)) {
      let output = ''
      for (const { text, size } of entries) {
        output += (messages++ === 0 ? HEADING : '\n') + text
        bytes += size
      }
      await shell.stdout.write(output)
    }
    await shell.stdout.write(messages === 0 ? EMPTY : footer(bytes, messages))
  })

/** `postqueue -j` */
const printJson = (shell: Shell, loaded: LoadedConfig): Promise<void> =>
  withReader(shell, loaded.config, async (opened) => {
    const now = opened.clock.now()
    const { queue_directory: directory } = loaded.config
    const all = { filter: ANY_MESSAGE, now, form: { kind: 'json' } as const }
    for await (const { lines } of maildropParts(directory, all, opened.clock.wall)) await shell.stdout.write(lines)
    for (const queue of ORDER) {
      const order = { ...all, filter: { ...ANY_MESSAGE, queue } }
      for await (const { lines } of listing(opened, folderOf(loaded.config), order)) await shell.stdout.write(lines)
    }
  })

async function flush(shell: Shell, { config }: LoadedConfig, selection: GivenSelection): Promise<void> {
  const client = await shell.openQueueClient(config)
  try {
    const { scheduled } = await client.perform({ operation: 'flush', selection, ...ANY_QUEUE, dryRun: false, who: shell.user })
    for (const text of passedOverTexts({ scheduled })) await shell.stderr.write(`postqueue: ${text}\n`)
  } finally {
    await client.close()
  }
}

export const flushAll = (shell: Shell, loaded: LoadedConfig): Promise<void> =>
  flush(shell, loaded, { kind: 'filter', given: {}, limit: null })

/** Flushes a message. An unknown queue id is not an error, as in Postfix. */
export async function flushMessage(shell: Shell, loaded: LoadedConfig, id: string): Promise<void> {
  if (!/^\w+$/.test(id)) throw new CommandError(EX.usage, 'invalid queue id')
  if (parseQueueId(id) !== undefined) await flush(shell, loaded, { kind: 'ids', ids: [id] })
}

/** Flushes the mail of a domain of fast_flush_domains (Postfix flush_send_site). */
export async function flushSite(shell: Shell, loaded: LoadedConfig, site: string): Promise<void> {
  if (!/^(?:[\w-]+(?:\.[\w-]+)*\.?|\[[\w.:]+\])$/.test(site))
    throw new CommandError(EX.usage, 'invalid site: give a host name or [address]')
  const domain = site.toLowerCase().replace(/\.$/, '')
  if (!isFlushable(domain, loaded.config)) {
    const text = `Flush service is not configured for destination "${site}"`
    throw new CommandError(EX.unavailable, `${text}: name it in fast_flush_domains, or use deferd queue flush --recipient '*@${domain}'`)
  }
  const recipient = `*@${domain}`
  await flush(shell, loaded, { kind: 'filter', given: { recipient }, limit: null })
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

/** Loads the configuration of a tool that was called with `-c FILE` (as in Postfix), `--config FILE` or `-o name=value`. */
export function configFor(
  shell: Shell,
  tool: string,
  options: readonly { readonly name: string; readonly value: string }[],
): Promise<LoadedConfig> {
  const file = options.findLast(({ name }) => name === 'config' || name === 'c')?.value
  const overrides = options.filter(({ name }) => name === 'o').map(({ value }) => value)
  return loadShellConfig(shell, { file, overrides, calledAs: tool })
}
