/** The parameters of screens: each screen refuses those that it does not declare. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { FILES_FOLDER } from '../../src/page/static-files.ts'
import { ApiWorld } from '../support/api-world.ts'
import { PageScreens } from '../support/page-screens.ts'

let world: ApiWorld
let screens: PageScreens
beforeEach(async () => {
  world = await ApiWorld.open('memory')
  screens = new PageScreens(world)
})
afterEach(() => world.close())

/** Status and markup of a screen; null for an answer that is no screen. */
async function shown(path: string): Promise<{ readonly status: number; readonly markup: string } | null> {
  const answer = await screens.screen(path)
  return answer.kind === 'text' && answer.contentType.startsWith('text/html') ? { status: answer.status, markup: answer.text } : null
}

/** The paths of all screens, with a name in place of each parameter of the path. */
const everyPath = (): readonly string[] =>
  screens.page.routes
    .filter(({ method, path }) => method === 'GET' && !path.includes(FILES_FOLDER))
    .map(({ path }) => path.slice(1).replaceAll(/:\w+/g, 'x'))

test('every screen refuses a parameter that it does not have, and says which it has', async () => {
  const paths = everyPath()
  expect(paths).toEqual(
    expect.arrayContaining(['', 'history', 'trends', 'audit', 'quotas', 'shares', 'suppressions', 'events', 'log', 'settings']),
  )
  for (const path of paths) {
    const answer = await shown(`${path}?colour=red`)
    expect([path, answer?.status]).toEqual([path, 422])
    expect(answer?.markup, path).toMatch(
      /role="alert">.*Unknown parameter &quot;colour&quot;; (?:this screen has none|known: [a-z_, ]+)\.<\/p>/s,
    )
  }
})

test('a refused screen names its parameters and the values of one, and leads to the screen without the wrong one', async () => {
  const status = await shown('history?state=bounced&sender=ann')
  expect(status?.markup).toContain('known: sender, recipient, outcome, class, status, since, left_after, left_before, before.')
  expect(status?.markup).toContain('href="./history?sender=ann"')
  expect(status?.markup).toMatch(/<a href="\.\/history"[^>]* aria-current="page"/)
  const outcome = await shown('history?outcome=lost')
  expect([outcome?.status, outcome?.markup]).toEqual([
    422,
    expect.stringContaining('outcome: expected one of delivered, bounced, expired, removed, got'),
  ])
  for (const path of [
    'trends?range=2d',
    'trends?split_by=colour',
    'messages?order=best',
    '?range=9h',
    'destinations?order=best',
    'events?type=colour.*',
  ])
    expect([path, (await shown(path))?.status]).toEqual([path, 422])
  const twice = await shown('history?sender=ann&sender=bob')
  expect([twice?.status, twice?.markup]).toEqual([422, expect.stringContaining('Parameter sender: expected one value, got 2.')])
  const hostile = await shown(`audit?${encodeURIComponent('"><script>pwned()</script>')}=1`)
  expect(hostile?.markup).not.toContain('<script>pwned')
})

test('the history has the conditions of the API: a status selects the mail with it', async () => {
  await world.queue.accept(['ann@ok.example'])
  await world.queue.advance(60_000)
  const name = '>ann@'
  expect((await shown('history?status=2.*'))?.markup).toContain(name)
  const refused = (await shown('history?status=5.*'))?.markup
  expect(refused).not.toContain(name)
  expect(refused).toContain('No mail that matches has left the queue.')
  expect(refused).toMatch(/name="status"\s+type="text"\s+value="5\.\*"/)
  expect((await shown('history?status=lost'))?.markup).toMatch(/role="alert">.*Status: expected a code/s)
})
