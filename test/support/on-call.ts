/**
 * The on-call story: an operator finds by the shell alone why mail waits, suspends a destination, and holds, deletes and restores
 * the mail of an abusive sender. The clock stands still, so that all output is the same in each run.
 */
import { ABUSER, fillOnCallQueue } from './on-call-queue.ts'
import { NOW, Operator } from './operator.ts'

/** Commands in their order. Those that only read are run for each width; the output of the others does not depend on it. */
const STEPS: readonly { readonly command: readonly string[]; readonly changes?: true }[] = [
  { command: ['status'] },
  { command: ['queue', 'causes'] },
  { command: ['destination', 'suspend', 'gmail.example', '--for', '2h', '--reason', 'rate limited, ticket 4711'], changes: true },
  { command: ['destination', 'list'] },
  { command: ['queue', 'shape', '--senders', '--addresses'] },
  { command: ['queue', 'list', '--sender', ABUSER, '--limit', '5'] },
  { command: ['queue', 'hold', '--sender', ABUSER], changes: true },
  { command: ['queue', 'list', '--queue', 'hold', '--limit', '3'] },
  { command: ['queue', 'delete', '--sender', ABUSER], changes: true },
  { command: ['status'] },
  { command: ['queue', 'restore', '--sender', ABUSER], changes: true },
  { command: ['queue', 'causes', '--destination', 'outlook.example'] },
  { command: ['history', 'list', '--since', '4h', '--limit', '3'] },
  { command: ['status'] },
  { command: ['audit'] },
]

const WIDTHS = [80, 120] as const

export interface OnCallRun {
  /** All commands with their output, by width of the terminal. */
  readonly screens: Readonly<Record<(typeof WIDTHS)[number], string>>
  /** Milliseconds of processor time per command. */
  readonly costs: readonly { readonly command: string; readonly cpu: number }[]
}

const shown = (command: readonly string[]): string => command.map((word) => (/[\s,]/.test(word) ? `'${word}'` : word)).join(' ')

export async function runOnCallStory(size: { readonly messages: number; readonly recipientsPerMessage: number }): Promise<OnCallRun> {
  const operator = new Operator()
  const screens = { 80: '', 120: '' }
  const costs: { command: string; cpu: number }[] = []
  try {
    await operator.own((store) => fillOnCallQueue(store, { ...size, now: NOW }))
    for (const { command, changes } of STEPS) {
      for (const columns of changes === true ? [80 as const] : WIDTHS) {
        const before = process.cpuUsage()
        const { code, out, err, asked } = await operator.run(command, { columns, answer: 'y' })
        const { user, system } = process.cpuUsage(before)
        costs.push({ command: shown(command), cpu: (user + system) / 1000 })
        const text = `$ deferd ${shown(command)}\n${asked.map((question) => `${question}y\n`).join('')}${out}${err}${code === 0 ? '' : `exit ${code}\n`}\n`
        for (const width of changes === true ? WIDTHS : [columns]) screens[width] += text
      }
    }
  } finally {
    operator.leave()
  }
  return { screens, costs }
}
