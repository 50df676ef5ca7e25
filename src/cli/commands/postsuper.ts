/**
 * `postsuper`, as Postfix users know it: actions in the order given, ids one by one, from standard input (`-`), or ALL.
 */
import type { OperationName, Order, Selection } from '../../queue/operations.ts'
import type { QueueName } from '../../queue/reader.ts'
import { getopt } from '../getopt.ts'
import type { OperationsDesk } from '../operations-desk.ts'
import { CommandError, EX, type Shell } from '../shell.ts'
import { harmless } from '../text.ts'
import { configFor } from './postqueue.ts'

interface Action {
  readonly operation: OperationName
  /** Where it looks when no queues are named. */
  readonly queues: readonly QueueName[]
  /** What is said of each message, and of all. */
  readonly said: string
  readonly summary: string
}

const LIVE: readonly QueueName[] = ['hold', 'incoming', 'active', 'deferred']

const EXPIRE: Action = { operation: 'expire', queues: LIVE, said: 'expired', summary: 'Force-expired' }
const RELEASE: Action = { operation: 'release', queues: ['hold'], said: 'released from hold', summary: 'Released from hold' }

const ACTIONS: Readonly<Record<string, readonly Action[]>> = {
  d: [{ operation: 'delete', queues: LIVE, said: 'removed', summary: 'Deleted' }],
  e: [EXPIRE],
  f: [EXPIRE, RELEASE],
  h: [{ operation: 'hold', queues: ['incoming', 'active', 'deferred'], said: 'placed on hold', summary: 'Placed on hold' }],
  H: [RELEASE],
  r: [{ operation: 'requeue', queues: LIVE, said: 'requeued', summary: 'Requeued' }],
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

/** How many ids from standard input are handed over at once. */
const IDS_AT_ONCE = 1_000

/** The selections that a queue id, `-` or ALL stands for. */
async function* selections(shell: Shell, id: string): AsyncGenerator<Selection> {
  if (id === 'ALL') {
    yield { kind: 'filter', filter: {} }
    return
  }
  if (id !== '-') {
    if (!/^\w+$/.test(id)) throw new CommandError(EX.usage, `postsuper: invalid queue id: ${harmless(id)}`)
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
  if (unknown !== undefined) throw new CommandError(EX.usage, `postsuper: there is no queue ${harmless(unknown)}`)
  const { config } = await configFor(shell, 'postsuper', options)
  const changed = new Map<string, number>()
  const desk = await shell.openDesk(config)
  try {
    for (const { name, value } of options) {
      for (const action of ACTIONS[name] ?? []) changed.set(action.summary, changed.get(action.summary) ?? 0)
      for await (const selection of ACTIONS[name] === undefined ? [] : selections(shell, value)) {
        for (const action of ACTIONS[name] ?? []) {
          const queues = action.queues.filter((queue) => operands.length === 0 || operands.includes(queue))
          const count = await act(shell, desk, action, { selection, queues })
          changed.set(action.summary, (changed.get(action.summary) ?? 0) + count)
        }
      }
    }
  } finally {
    await desk.close()
  }
  for (const [summary, count] of changed) await shell.stderr.write(`postsuper: ${summary}: ${count} message${count === 1 ? '' : 's'}\n`)
}

async function act(shell: Shell, desk: OperationsDesk, action: Action, what: Pick<Order, 'selection' | 'queues'>): Promise<number> {
  if (what.queues?.length === 0) return 0
  const words = what.selection.kind === 'filter' ? 'ALL' : what.selection.ids.slice(0, 20).join(' ')
  let said = Promise.resolve()
  const { changed } = await desk.perform({ ...what, operation: action.operation, who: shell.user, words }, ({ ids }) => {
    const text = ids.map((id) => `postsuper: ${id}: ${action.said}\n`).join('')
    said = said.then(() => shell.stderr.write(text))
  })
  await said
  return changed
}
