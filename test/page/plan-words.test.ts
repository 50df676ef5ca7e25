/** The dry run of an operation: what it selects in the words of the screen that led to it, and the number to type. */
import { configFrom } from '../../src/config/load.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { operationScreen, planScreen } from '../../src/page/screens/operation-screens.ts'
import type { View } from '../../src/page/markup/view.ts'
import type { OperationJson } from '../../src/resources/operation-json.ts'
import { ApiWorld } from '../support/api-world.ts'
import { PageScreens } from '../support/page-screens.ts'

let world: ApiWorld
let screens: PageScreens

beforeAll(async () => {
  world = await ApiWorld.open('memory')
  screens = new PageScreens(world)
  for (let n = 0; n < 3; n++) await world.queue.accept([`ann${n}@far.example`, `bob${n}@far.example`, `eve${n}@other.example`])
  await world.queue.rest()
})
afterAll(() => world.close())

const hrefOf = (page: string, verb: string): string =>
  (new RegExp(`href="\\.\\./(operations/new\\?operation=${verb}[^"]*reply=[^"]*)"`).exec(page)?.[1] ?? '').replaceAll('&amp;', '&')

test('a cause is named in the dry run as on the screen, with its recipients beside the messages', async () => {
  const destination = await screens.text('destinations/far.example')
  const plan = await screens.text(hrefOf(destination, 'hold'))
  expect(plan).toContain('mail that waits for 450 4.2.1 busy, try later (rcpt) at far.example')
  expect(plan).toMatch(/<strong>3<\/strong> with 9 recipients/)
  expect(plan).toMatch(/<dt>of this cause<\/dt><dd>6 recipients, counted/)
  expect(plan).not.toContain('reply contains')
})

test('a filter that is no cause is described by its conditions', async () => {
  const plan = await screens.text('operations/new?operation=hold&scope=filter&sender=app@us.example')
  expect(plan).toContain('from app@us.example')
  expect(plan).not.toContain('of this cause')
})

test('a reschedule is asked for its time, and then planned', async () => {
  const selection = 'operations/new?operation=reschedule&scope=filter&sender=app@us.example'
  const question = await screens.text(selection)
  expect(question).toContain('Reschedule: when?')
  expect(question).toMatch(/type="hidden" name="sender" value="app@us.example"/)
  expect(await screens.text(`${selection}&not_before=soon`)).toContain('A time is expected')
  const plan = await screens.text(`${selection}&not_before=2h`)
  expect(plan).toContain('Reschedule 3 messages?')
  expect(plan).toContain('No delivery begins within 2h of your confirmation. The lifetime is counted from that time.')
  expect(plan).toContain('deferd queue reschedule --in=2h --sender app@us.example')
  expect(await screens.text(`${selection}&not_before=2126-11-24T08:00:00Z`)).toContain('No delivery begins before 2126-11-24 08:00:00 UTC.')
})

test('a reclass is asked for its class, and is offered where there are several', async () => {
  const classes = { class: { fast: { weight: 100 }, bulk: { weight: 1 } }, default_class: 'bulk' }
  const classed = await ApiWorld.open('memory', configFrom(classes, 'relay.example'), classes)
  await classed.queue.accept(['ann@far.example'])
  const page = new PageScreens(classed)
  expect(await page.text('messages')).toContain('Change class…')
  expect(await screens.text('messages')).not.toContain('Change class…')
  const selection = 'operations/new?operation=reclass&scope=filter&class=bulk'
  const question = await page.text(selection)
  expect(question).toContain('<option>fast</option><option>bulk</option>')
  expect(question).toMatch(/type="hidden" name="class" value="bulk"/)
  const plan = await page.text(`${selection}&to_class=fast`)
  expect(plan).toContain('Change class 1 message?')
  expect(plan).toContain('Deliveries have their turns in the class fast. Expiry')
  expect(plan).toContain('deferd queue reclass --class bulk fast')
  await classed.close()
})

test('the number is typed as it is printed, or without separators', () => {
  const plan = {
    token: 't',
    matched: 1_482,
    recipients: 1_482,
    unknown: 0,
    bytes: 1,
    oldest: null,
    in_transfer: 0,
    destinations: 1,
    examples: [],
    told_senders: false,
    undo: null,
    operation: 'delete',
    release: null,
    class: null,
  } as const
  const facts = {
    plan,
    selection: '',
    cause: null,
    words: [],
    call: { method: 'POST', path: 'x' },
    again: '',
    key: '',
    back: '',
    problem: null,
  } as const
  const { markup } = planScreen(VIEW, facts).main
  expect(markup).toContain('Type 1,482 to confirm')
  const pattern = /pattern="([^"]*)"/.exec(markup)?.[1] ?? ''
  const accepts = (typed: string): boolean => new RegExp(`^(?:${pattern})$`, 'v').test(typed)
  expect(['1482', '1,482', '1 482', '1.482'].every(accepts)).toBe(true)
  expect(['1481', '1,4,82', '11482', ''].some(accepts)).toBe(false)
})

const VIEW: View = {
  root: './',
  here: '',
  now: 0,
  clock: { zone: () => 0 } as unknown as View['clock'],
  relay: 'r',
  version: '0',
  files: 's',
  health: null,
  classes: [],
  requester: { name: 'ann', mayOperate: true, mayAdminister: true, mayReadContent: false },
}

test('the audit log has the reason of a suspension, and its length as it was asked for', async () => {
  const suspension = { who: 'page:ann', duration: 21_599_563, reason: 'provider moves' }
  await world.api.api.view.operations().suspend('other.example', suspension)
  const audit = await screens.text('audit')
  expect(audit).toContain('data-label="Reason"><span class="reply">provider moves</span></td>')
  expect(audit).toContain('other.example --for=6h')
  const [record = ''] = /operations\/\d+/.exec(audit) ?? []
  expect(await screens.text(record)).toContain('<p role="status">It was done.</p>')
})

test('the result of an erasure tells what its number does not count', () => {
  const view = {
    root: './',
    now: 0,
    clock: { zone: () => ({ offset: 0, name: 'UTC' }) },
    requester: { mayOperate: true },
  } as unknown as View
  const operation = {
    operation: 'erase',
    changed: 315,
    matched: 315,
    in_transfer: 0,
    error: null,
    reason: null,
    undoes: null,
  } as OperationJson
  const shown = {
    ...operation,
    id: 7,
    who: 'page:ann',
    time: 0,
    arguments: '',
    request_id: null,
    undone_by: null,
    undo_until: null,
    expected: null,
  }
  const uncounted = 'Kept contents of returned mail, dialogues and events are erased beside them, and not counted here.'
  for (const [state, text] of [
    ['running', 'Messages changed in the history so far: <span data-live="changed" data-form="count">315</span>.'],
    ['done', '315 messages were changed in the history.'],
    ['cancelled', 'Cancelled. 315 messages were changed in the history before that.'],
  ] as const)
    expect(operationScreen(view, { operation: { ...shown, state }, back: null }).main.markup).toContain(
      `<p role="status">${text} ${uncounted}</p>`,
    )
})
