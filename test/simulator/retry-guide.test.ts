/** docs/choosing-retry-settings.md: every command in it runs, and prints the figures of the page. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { type Run, simulate } from '../support/simulate-command.ts'

const page = readFileSync(new URL('../../docs/choosing-retry-settings.md', import.meta.url), 'utf8')
/** The one with 20,000 messages runs in test/long/scenario.long.ts. */
const commands = [...page.matchAll(/^deferd simulate (.*)$/gm)]
  .map(([, words]) => words ?? '')
  .filter((words) => !words.includes('rate-limited-provider'))

/** Splits a command line as a shell does, for the syntax that the page uses. */
const split = (words: string): string[] => [...words.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '')

/** Each command runs once. */
const runs = new Map<string, Promise<Run>>()
function runOf(command: string): Promise<Run> {
  const run = runs.get(command) ?? simulate(split(command))
  runs.set(command, run)
  return run
}

describe('each command of the guide runs', () => {
  test('the guide has commands', () => expect(commands.length).toBeGreaterThanOrEqual(9))
  for (const command of commands) {
    test(command, async () => {
      const run = await runOf(command)
      expect(run).toMatchObject({ exitCode: null, err: '' })
      expect(run.out.length).toBeGreaterThan(100)
    })
  }
})

test('the scenario of the guide equals the example', () => {
  const example = readFileSync(new URL('../../examples/rate-limited-provider.toml', import.meta.url), 'utf8')
  const shown = /```toml\n# examples\/rate-limited-provider\.toml\n([\s\S]*?)```/.exec(page)?.[1]
  expect(shown).toBe(example.replace(/^#.*\n/gm, '').trimStart())
})

describe('the figures of the guide are the output of the commands', () => {
  const said: readonly (readonly [string, ...RegExp[]])[] = [
    [
      '--policy doubling',
      /attempts in all +112 +10 +34 +28/,
      /an outage of 2d +33m \/ 1\.1h +1\.5d \/ 1\.7d +1\.8h \/ 4\.0h +2\.6h \/ 6\.0h/,
    ],
    ['--within', /tried 115 times/, /minimal_backoff_time = "1800s"\nmaximal_backoff_time = "3811s"/],
    ['backoff-none', /^backoff-none +1105\.8 s/m, /^google-http +38\.\d s/m],
    ['--model row', /^none +100 +2421 +2\.0/m, /^exponential +100 +1858 +63/m, /^full +100 +796 +4\.97/m],
    [
      '--client reno',
      /^backoff +46\.7 s.* 17,399 /m,
      /^tahoe +27\.5 s.* 2,121 /m,
      /^reno +25\.1 s.* 2,085 /m,
      /^postfix +25\.1 s.* 2,041 /m,
    ],
    ['--backlog', /at the end of 5m +1,000 +4\.5 +2\.5/, /at the end of 1h +1,000 +1\.7 +0\.42/, /at the end of 12h +1,000 +1\.7 +0\.25/],
    ['--requests 100', /^backoff .* 270 +100 /m, /^reno .* 120 +100 /m],
    ['--requests 200', /^backoff .* 825 +200 /m, /^reno .* 267 +200 /m],
    ['--requests 500', /^backoff .* 3,046 +500 /m, /^reno .* 570 +500 /m],
    ['--requests 1000', /^backoff .* 7,500 +1,000 /m, /^reno .* 1,070 +1,000 /m],
    ['--requests 5000', /^backoff .* 52,152 +5,000 /m, /^reno .* 5,181 +5,000 /m],
    ['--decrease-factor', /^reno +21\.3 s +2,807 /m],
    ['--client fixed', /^fixed +collapsed +400,000 +50 /m],
    ['--model crash', /^fixed +420 +516 /m, /^fixed +1000 +139 /m, /^aloha +1000 +4112 /m, /^ethernet +1000 +5999 /m],
    ['--model limit', /^1\/N +16\.5/m, /^1\/sqrt\(N\) +24\.8/m, /^1 +49\.7/m],
  ]
  for (const [part, ...figures] of said) {
    test(part, async () => {
      const command = commands.find((words) => words.includes(part))
      const { out } = await runOf(command ?? '')
      for (const figure of figures) expect(out).toMatch(figure)
    })
  }
})
