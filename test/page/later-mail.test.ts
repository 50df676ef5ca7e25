/** Screens about mail for later, and about settings with many attempts. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PageDaemon } from '../support/page-daemon.ts'
import { pageRequests } from '../support/page-requests.ts'

let daemon: PageDaemon
const requests = pageRequests(() => daemon, 'admin')
const textOf = async (path: string): Promise<string> => (await requests.textOf(path)).replaceAll(/\n\s*/g, ' ')

beforeAll(async () => {
  daemon = await PageDaemon.start({ smtpd_future_release_limit: '7d', minimal_backoff_time: '20s', maximal_backoff_time: '2m' })
  await daemon.send([{ from: 'news@shop.example', to: 'ann@far.example', parameters: { mail: 'HOLDFOR=86400' } }])
})
afterAll(() => daemon.close())

test('a destination whose mail is for later has no causes, and does not say that no mail waits', { timeout: 60_000 }, async () => {
  const read = () => textOf(`destinations/${encodeURIComponent('smtp:[127.0.0.1]:9')}`)
  // The causes are counted after the first look.
  await expect
    .poll(read, { timeout: 50_000 })
    .toContain('None of the mail that waits was tried: it is scheduled for later, or has just come.')
  const page = await read()
  expect(page).toContain('1 recipient waits for a later time, as scheduled mail does.')
  expect(page).not.toContain('No mail waits')
})

test('all coming attempts are counted, also those that are not drawn', async () => {
  const id = /messages\/(\w{8,})"/.exec(await textOf('messages'))?.[1]
  expect(await textOf(`messages/${id}`)).toMatch(/If it stays deferred: 1,4\d\d more attempts \(the first 500 are drawn\), the next/)
})

test('the planner opens with a plan of these settings, and a refusal begins with a capital letter', async () => {
  expect(await textOf('planner')).toContain('Attempts in all')
  expect(await textOf('planner?policy=fixed')).toMatch(/role="alert">.* The policy fixed makes more than 2,000 attempts in the lifetime/)
})

test('the consequences of an operation are true for one message and for several', async () => {
  const id = /messages\/(\w{8,})"/.exec(await textOf('messages'))?.[1]
  for (const operation of ['hold', 'release', 'expire', 'delete', 'requeue']) {
    const plan = await textOf(`operations/new?operation=${operation}&scope=ids&id=${id}`)
    expect(plan).toContain('<p>Each message ')
    expect(plan).not.toMatch(/\b(?:They|Their|them)\b/)
  }
  const flush = await textOf(`operations/new?operation=flush&scope=ids&id=${id}`)
  expect(flush).toMatch(/No message can be changed by this operation\..*1 is scheduled and was passed over/s)
})
