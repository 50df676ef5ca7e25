/** The screen of the log, the links that lead to it from other screens, and those from its lines. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { logSentence, NO_LINES } from '../../src/page/screens/system/log-screen.ts'
import type { LogPageJson } from '../../src/resources/log-json.ts'
import type { QueueEvent } from '../../src/telemetry/events.ts'
import { ApiWorld } from '../support/api-world.ts'
import { PageScreens } from '../support/page-screens.ts'

let world: ApiWorld
let screens: PageScreens
let id = ''

beforeAll(async () => {
  world = await ApiWorld.open('memory')
  screens = new PageScreens(world)
  ;[id = ''] = await world.fill(1, 'far.example')
  const now = world.queue.clock.wall.now()
  const log = (event: QueueEvent, ago: number): void => world.queue.relay.status.log.listen(event, now - ago)
  log({ kind: 'note', level: 'warning', text: `${id}: not signed with DKIM <script>` }, 3_000)
  const reason = 'host mx.far.example[192.0.2.1] said: 421 4.7.28 too much mail (in reply to MAIL FROM command)'
  log({ kind: 'died', destination: 'far.example', until: now, siteStatus: { status: '4.7.28', reason, stage: 'mail' } }, 2_000)
})
afterAll(() => world.close())

/** Targets of the links of a screen to the log. */
const logLinks = (markup: string): readonly string[] =>
  [...markup.matchAll(/href="(?:\.\.?\/)+(log[^"]*)"/g)].map(([, target = '']) => target.replaceAll('&amp;', '&'))

test('a line shows its reply first and leads to its message or destination', async () => {
  const screen = await screens.text('log')
  expect(screen).toContain('<strong>421 4.7.28</strong> too much mail')
  expect(screen).toContain(`href="./messages/${id}"`)
  expect(screen).toContain('href="./destinations/far.example"')
  expect(screen).toContain('not signed with DKIM &lt;script&gt;')
  expect(screen).toMatch(/2 warnings since \d\d:\d\d\./)
})

test('a message, a destination and Now lead to their lines', async () => {
  const reached = async (from: string, link: RegExp) => {
    const target = logLinks(await screens.text(from)).find((one) => link.test(one))
    expect(target, from).toBeDefined()
    return screens.text(target ?? '')
  }
  expect(await reached(`messages/${id}`, /queue_id=/)).toMatch(/1 warning since [\d:]+ match/)
  expect(await reached('destinations/far.example', /destination=far\.example/)).toMatch(/1 warning since [\d:]+ match/)
  const ofNow = await reached('', /event=note/)
  expect(ofNow).toMatch(/1 warning since [\d:]+ match/)
  expect(ofNow).toContain('not signed with DKIM')
  expect(await screens.text('')).toContain(`1 note (warnings and errors) that this process has logged in the last hour, the last: ${id}`)
})

test('an impossible condition is refused with a sentence', async () => {
  const refused = async (query: string) => /class="problem"[^>]*>.*?<\/svg> (.*?)<\/p>/s.exec(await screens.text(`log?${query}`))?.[1]
  expect(await refused('logged_after=soon')).toContain('expected a time such as')
  expect(await refused('event=nothing')).toContain('Event: ')
  expect(await refused('level=error')).toBeUndefined()
  // Nothing was looked for.
  expect(await screens.text('log?logged_after=soon')).not.toContain('No line matches.')
  expect(await screens.text('log?level=error')).toContain('No line matches.')
})

test('the sentence has the number of lines, and since when they are kept', () => {
  const zoned = { now: 7_200_000, clock: { zone: () => ({ offset: 0, name: 'UTC' }) } }
  const page = (counts: Partial<LogPageJson['counts']>, ...since: readonly (number | null)[]): LogPageJson => ({
    ...NO_LINES,
    counts: { ...NO_LINES.counts, ...counts },
    nodes: since.map((one, i) => ({ name: `n${i}`, since: one })),
  })
  const says = (isFiltered: boolean, ...given: Parameters<typeof page>) => logSentence(page(...given), isFiltered, zoned)
  expect(says(false, {}, 3_600)).toBe('No warning or error since 01:00.')
  expect(says(true, {}, 3_600)).toBe('No warning or error since 01:00 matches.')
  expect(says(false, { warn: 1 }, 3_600, 3_660)).toBe('1 warning since 01:00 (of n1 since 01:01).')
  expect(says(false, {}, 3_601, 3_602)).toBe('No warning or error since 01:00.')
  expect(says(false, { warn: 2, error: 1 }, 3_600, null)).toBe('1 error and 2 warnings since 01:00.')
  expect(says(true, { warn: 2, error: 1, fatal: 1 }, null)).toBe('1 fatal error, 1 error and 2 warnings match.')
})
