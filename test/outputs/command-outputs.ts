/** Outputs of commands: help texts, what they show of a queue at three widths, and what they answer to each role. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { LISTED_COMMANDS } from '../../src/cli/remote/command-routes.ts'
import type { QueueReader } from '../../src/store/queue-reader.ts'
import { LINES, SHOWN } from '../support/command-lines.ts'
import { Operator, type Terminal } from '../support/operator.ts'
import type { Filled } from './filled-world.ts'
import type { Collect } from './outputs.ts'

/** Lines that show mail of each state. */
const STATES = ['deferred', 'held', 'later', 'trash', 'returned', 'delivered'] as const
const FORMS: readonly (readonly [name: string, terminal: Terminal])[] = [
  ['piped', {}],
  ['80', { columns: 80, rows: 24 }],
  ['120', { columns: 120, rows: 50 }],
  ['colours', { columns: 80, rows: 24, env: { NO_COLOR: '' } }],
]
/** Commands of Postfix that read the queue, and commands that ask no relay. */
const LOCAL = [
  'mailq',
  'postqueue -p',
  'postqueue -j',
  'postcat -q DEFERRED',
  'postcat -qe DEFERRED',
  'qshape deferred',
  'queue list',
  'queue list --json',
  'queue show DEFERRED',
  'queue shape',
  'queue causes',
  'history list',
  'history list --json',
  'destination list',
  'audit',
  'audit --json',
  'status',
  'status --json',
  'config',
  'config --json',
  'bounce preview',
  'retry 4.7.1',
  'postconf -n',
  'postconf -d myhostname',
  'no-such-command',
  'queue list --no-such-option',
  'queue show',
] as const
/** The check of a domain is awaited in real time. */
const AWAITED = /^check domain /

export async function commandOutputs({ world, ids }: Filled, collect: Collect): Promise<void> {
  const operator = new Operator()
  const { clock } = world.queue
  const origin = new URL(world.api.base).origin
  const withIds = (line: string): string[] =>
    line
      .split(' ')
      .map((word) =>
        word === 'ID' ? ids.deferred : ((/^[A-Z]+$/.test(word) ? ids[word.toLowerCase() as keyof Filled['ids']] : undefined) ?? word),
      )
  const run = async (form: string, line: string, terminal: Terminal, ...more: readonly string[]): Promise<void> => {
    const { code, out, err, asked } = await operator.run([...withIds(line), ...more], { clock, ...terminal })
    const text = [`deferd ${line}`, out, err, ...asked, `exit code ${code}`].join('\n')
    collect(`commands/${form}/${line}`, text.replaceAll(origin, 'http://relay.example').replaceAll(operator.directory, 'FOLDER'))
  }
  const token = (role: string): readonly string[] => {
    const file = join(operator.directory, `${role}.token`)
    writeFileSync(file, `${role}\n`)
    return ['--host', origin, '--token-file', file]
  }
  try {
    for (const words of ['', ...LISTED_COMMANDS])
      for (const columns of [80, 120]) await run(`help-${columns}`, `${words} --help`.trim(), { columns })
    const access = { openReader: async () => ({ reader: open(world.queue.reader), clock }) }
    for (const line of LOCAL) await run('local', line, { columns: 80, access })
    const shown = [
      ...SHOWN,
      ...STATES.flatMap((state) => [`queue show ${state.toUpperCase()}`, `queue show ${state.toUpperCase()} --json`]),
    ]
    for (const [form, terminal] of FORMS) for (const line of shown) await run(form, line, terminal, ...token('admin'))
    for (const line of shown) await run('limited', line, { columns: 80 }, ...token('limited'))
    for (const role of ['viewer', 'admin'])
      for (const line of LINES.filter((one) => !AWAITED.test(one))) await run(role, line, { columns: 80 }, ...token(role))
  } finally {
    operator.leave()
  }
}

/** A reader that stays open when a command closes it. */
const open = (reader: QueueReader): QueueReader =>
  new Proxy(reader, {
    get: (target, name) => {
      if (name === 'close') return async () => undefined
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? (member.bind(target) as unknown) : member
    },
  })
