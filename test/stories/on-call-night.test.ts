/**
 * Thirty thousand messages are stuck: each cause is on one screen. The screens are those of a terminal with 80 columns and 24 lines, and
 * are kept in test/stories/golden; `vitest run --update=all` writes them again.
 */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CommandError, EX } from '../../src/cli/shell/exit.ts'
import { systemClock } from '../../src/system/system-clock.ts'
import { fillNight, type Night } from '../support/on-call-night.ts'
import { NOW, Operator } from '../support/operator.ts'

const operator = new Operator()
let night: Night
beforeAll(async () => {
  night = await operator.own((store) => fillNight(store, NOW))
}, 120_000)
afterAll(() => operator.leave())

const CLEAR = '\u001b[H\u001b[2J'

async function screenOf(command: readonly string[], rows: number, columns = 80): Promise<string> {
  const access = { liveDestinations: async () => night.status.destinations }
  const { code, out, err } = await operator.run(command, { columns, rows, status: async () => night.status, access })
  expect([code, err]).toEqual([0, ''])
  return out.replace(CLEAR, '')
}

const linesOf = (screen: string): readonly string[] => screen.replace(/\n$/, '').split('\n')

test('top fits each screen: its tables stay, and lists are cut', async () => {
  for (const [columns, rows] of [
    [80, 24],
    [80, 40],
    [120, 60],
    [60, 24],
  ] as const) {
    const lines = linesOf(await screenOf(['top', '--count', '1'], rows, columns))
    expect(lines.length).toBeLessThan(rows)
    expect(lines.filter((line) => line.length > columns)).toEqual([])
    expect(lines[0]).toMatch(/^relay\.example: deferd 1\.0 is running/)
    for (const heading of ['RECIPIENTS', 'QUEUE', 'NEEDS ATTENTION', 'OTHER DESTINATIONS'])
      expect(
        lines.some((line) => line.startsWith(heading)),
        heading,
      ).toBe(true)
    expect(lines.some((line) => /^… and \d+ more: deferd destination list$/.test(line))).toBe(rows === 24)
  }
})

test('the screens at 80 × 24', async () => {
  const commands: readonly (readonly [command: readonly string[], most: number])[] = [
    [['top', '--count', '1'], 24],
    [['status'], Infinity],
    [['queue', 'causes'], Infinity],
    [['destination', 'list'], 24],
    [['destination', 'show', 'blocked.test'], Infinity],
    [['destination', 'show', 'smtp:[relay.shop.test]:587'], Infinity],
    [['queue', 'show', night.blocked], 24],
  ]
  let text = ''
  for (const [command, most] of commands) {
    const lines = linesOf(await screenOf(command, 24))
    const shown = lines.slice(0, most)
    text += `$ deferd ${command.join(' ')}\n${shown.join('\n')}\n${lines.length > shown.length ? '[…]\n' : ''}\n`
  }
  await expect(text).toMatchFileSnapshot(join(import.meta.dirname, 'golden/on-call-night-80x24.txt'))
  expect(text).toContain('200 destinations: do not answer, mx.deadprov.test[185.30.0.31] — 7,500 waiting\n')
})

test('six causes, mail that was not tried, and mail on hold are on one screen', async () => {
  const lines = linesOf(await screenOf(['queue', 'causes'], 24))
  expect(lines.length).toBeLessThan(24)
})

test('top waits for a daemon that is slow, and ends when none runs', async () => {
  const answers = [new CommandError(EX.temporary, 'the daemon has not answered for 30 seconds'), night.status, null]
  const access = {
    liveStatus: async () => {
      const answer = answers.shift() ?? null
      if (answer instanceof CommandError) throw answer
      return answer
    },
  }
  const { code, out, err } = await operator.run(['top', '--interval', '100ms'], { columns: 80, rows: 24, clock: systemClock, access })
  expect(code).toBe(69)
  expect(out).toContain('deferd 1.0 is running')
  expect(err).toMatch(/^deferd: the daemon does not answer, .*; top waits for it\ndeferd: .*no daemon runs/)
})
