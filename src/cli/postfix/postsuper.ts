/**
 * `postsuper` with Postfix's options and output (postsuper(1)). Actions run in the given order. They select messages by id, by
 * ids from standard input (`-`), or all messages (ALL).
 */
import { ANY_QUEUE, type OperationName } from '../../queue/operation-request.ts'
import { getopt } from './getopt.ts'
import type { CommandedOperation, GivenSelection, QueueClient } from '../shell/queue-client.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Shell } from '../shell/shell.ts'
import { maskControls } from '../../presentation/text.ts'
import { configFor } from './postqueue.ts'
import type { QueueName } from '../../mail/message.ts'

interface Action {
  readonly operation: OperationName
  /** Queues that the action searches; operands of the command restrict them. */
  readonly queues: readonly QueueName[]
  /** Text of the line for each changed message. */
  readonly logText: string
  /** Text of the line with the number of changed messages. */
  readonly summary: string
}

const LIVE: readonly QueueName[] = ['hold', 'incoming', 'active', 'deferred', 'scheduled']

const EXPIRE: Action = { operation: 'expire', queues: LIVE, logText: 'expired', summary: 'Force-expired' }
const RELEASE: Action = { operation: 'release', queues: ['hold'], logText: 'released from hold', summary: 'Released from hold' }

const ACTIONS: Readonly<Record<string, readonly Action[]>> = {
  d: [{ operation: 'delete', queues: LIVE, logText: 'removed', summary: 'Deleted' }],
  e: [EXPIRE],
  f: [EXPIRE, RELEASE],
  h: [{ operation: 'hold', queues: ['incoming', 'active', 'deferred', 'scheduled'], logText: 'placed on hold', summary: 'Placed on hold' }],
  H: [RELEASE],
  r: [{ operation: 'requeue', queues: LIVE, logText: 'requeued', summary: 'Requeued' }],
}

const KNOWN: readonly string[] = ['maildrop', 'incoming', 'active', 'deferred', 'hold', 'corrupt']

async function* lines(input: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of input) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = parts.pop() ?? ''
    yield* parts
  }
  yield rest
}

/** Number of ids from standard input that one operation handles. */
const IDS_AT_ONCE = 1_000

/** The selections named by a queue id, `-` or ALL. */
async function* selections(shell: Shell, id: string): AsyncGenerator<GivenSelection> {
  if (id === 'ALL') {
    yield { kind: 'filter', given: {}, limit: null }
    return
  }
  if (id !== '-') {
    if (!/^\w+$/.test(id)) throw new CommandError(EX.usage, `postsuper: invalid queue id: ${maskControls(id)}`)
    yield { kind: 'ids', ids: [id] }
    return
  }
  let ids: string[] = []
  for await (const line of lines(shell.stdin)) {
    const [word = ''] = line.trim().split(/\s+/)
    if (word === '') continue
    ids.push(word)
    if (ids.length >= IDS_AT_ONCE) {
      yield { kind: 'ids', ids }
      ids = []
    }
  }
  if (ids.length > 0) yield { kind: 'ids', ids }
}

export async function postsuper(shell: Shell, args: readonly string[]): Promise<void> {
  const { options, operands } = getopt('postsuper', args, 'c:d:e:f:h:H:o:pr:sSv')
  const unknown = operands.find((name) => !KNOWN.includes(name))
  if (unknown !== undefined) throw new CommandError(EX.usage, `postsuper: there is no queue ${maskControls(unknown)}`)
  const { config } = await configFor(shell, 'postsuper', options)
  const changed = new Map<string, number>()
  const client = await shell.openQueueClient(config)
  try {
    for (const { name, value } of options) {
      for (const action of ACTIONS[name] ?? []) changed.set(action.summary, changed.get(action.summary) ?? 0)
      for await (const selection of ACTIONS[name] === undefined ? [] : selections(shell, value)) {
        for (const action of ACTIONS[name] ?? []) {
          const queues = action.queues.filter(
            (queue) => operands.length === 0 || operands.includes(queue === 'scheduled' ? 'deferred' : queue),
          )
          const count = await act(shell, client, action, { selection, queues })
          changed.set(action.summary, (changed.get(action.summary) ?? 0) + count)
        }
      }
    }
  } finally {
    await client.close()
  }
  for (const [summary, count] of changed) await shell.stderr.write(`postsuper: ${summary}: ${count} message${count === 1 ? '' : 's'}\n`)
}

async function act(
  shell: Shell,
  client: QueueClient,
  action: Action,
  what: Pick<CommandedOperation, 'selection' | 'queues'>,
): Promise<number> {
  if (what.queues?.length === 0) return 0
  let written = Promise.resolve()
  const operation = { ...ANY_QUEUE, ...what, operation: action.operation, dryRun: false, who: shell.user }
  const { changed } = await client.perform(operation, ({ ids }) => {
    const text = ids.map((id) => `postsuper: ${id}: ${action.logText}\n`).join('')
    written = written.then(() => shell.stderr.write(text))
  })
  await written
  return changed
}
