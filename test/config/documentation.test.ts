import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { commandsPage } from '../../src/cli/commands-page.ts'
import { EMPTY_TALLY } from '../../src/store/counts/queue-tally.ts'
import { processShell } from '../../src/cli/process-shell.ts'
import { buildProgram } from '../../src/cli/program.ts'
import { configurationPage } from '../../src/config/documentation.ts'
import { KEYS } from '../../src/testkit/remote/rule-keys.ts'
import { relayParameters, withRuleComments } from '../../scripts/documented-types.ts'
import { backoffPage } from '../../scripts/backoff-page.ts'
import { eventsPage } from '../../scripts/events-page.ts'
import { currentPage } from '../../scripts/performance/publish-files.ts'
import { queueShowPicture } from '../../scripts/screenshot.ts'
import { OPTIONS } from '../../src/config/options.ts'
import { realClock } from '../support/real-clock.ts'
import { openMetrics } from '../../src/telemetry/metrics/metrics.ts'
import { monitoringPage } from '../../src/telemetry/metrics/monitoring-page.ts'

const root = join(import.meta.dirname, '../..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

/** Without the padding that the formatter gives to tables. */
const unpadded = (page: string): string => page.replaceAll(/ +/g, ' ').replaceAll(/-{3,}/g, '---')

describe('generated pages are current (node scripts/docs.ts)', () => {
  test('docs/configuration.md', () => {
    expect(unpadded(read('docs/configuration.md'))).toBe(unpadded(configurationPage()))
  })

  test('the types of a configuration and of a rule', () => {
    expect(read('src/config/values/relay-parameters.ts')).toBe(relayParameters())
    const keys = read('src/testkit/remote/rule-keys.ts')
    expect(keys).toBe(withRuleComments(keys))
    expect(keys.slice(keys.indexOf('export interface RuleText')).match(/^ {2}\/\*\* .* \*\/\n {2}readonly \w+\?/gm)).toHaveLength(
      Object.keys(KEYS).length,
    )
  })

  test('docs/commands.md', async () => {
    expect(unpadded(read('docs/commands.md'))).toBe(unpadded(commandsPage(await buildProgram(processShell()))))
  })

  test('docs/backoff.md', () => {
    expect(unpadded(read('docs/backoff.md'))).toBe(unpadded(backoffPage()))
  })

  test('docs/events.md', () => {
    expect(unpadded(read('docs/events.md'))).toBe(unpadded(eventsPage()))
  })

  test('docs/monitoring.md', () => {
    const { texts } = openMetrics({
      clock: realClock,
      tally: async () => EMPTY_TALLY,
      destinations: () => [],
    })
    expect(unpadded(read('docs/monitoring.md'))).toBe(unpadded(monitoringPage(texts)))
  })

  test('docs/performance.md', () => {
    expect(unpadded(read('docs/performance.md'))).toBe(unpadded(currentPage()))
  })

  test('docs/images/queue-show.svg, drawn from a run in virtual time', async () => {
    expect(read('docs/images/queue-show.svg')).toBe(await queueShowPicture())
  })
})

describe('every parameter', () => {
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter(
      (path) =>
        path.endsWith('.ts') &&
        !path.endsWith('options.ts') &&
        path !== 'config/documentation.ts' &&
        path !== 'config/values/postfix-parameters.ts',
    )
    .map((path) => read(join('src', path)))
    .join('\n')

  // Tables that hold for one destination name the parameter without default_.
  const isUsed = (name: string): boolean =>
    [name, name.replace(/^default_/, '')].some((word) => new RegExp(`(?<![\\w$])${word}(?!\\w)`).test(sources))

  test('is documented in one sentence', () => {
    const page = configurationPage()
    for (const [name, { about }] of Object.entries(OPTIONS)) {
      expect(page, name).toContain(`| \`${name}\` |`)
      expect(about, name).toMatch(/^[A-Z0-9[`].*[.:]$|^[a-z]\w+: .*\.$|^[a-z].*\.$/s)
    }
  })

  test('is used', () => {
    expect(Object.keys(OPTIONS).filter((name) => !isUsed(name))).toEqual([])
  })
})
