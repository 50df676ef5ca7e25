/** The screens of deliverability: they look nothing up, and records of strangers stay text. */
import { afterEach, expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import { checkState, domainsSentence, findingsSentence } from '../../src/page/screens/system/deliverability-sentence.ts'
import type { DomainReportJson } from '../../src/resources/domains/domain-check-json.ts'
import { ApiWorld } from '../support/api-world.ts'
import { goldenReport } from '../support/domain-reports.ts'
import { HOSTILE_TEXTS } from '../support/hostile-mail.ts'
import { ADMIN, PageScreens } from '../support/page-screens.ts'

const SETTINGS = {
  myorigin: 'us.example',
  provider: { google: { mx: ['.google.example'] } },
  dkim: { '.shop.example': { keys: ['s1:/etc/deferd/s1.pem', 's2?:/etc/deferd/s2.pem'] } },
}

let world: ApiWorld
let screens: PageScreens
/** The questions that were looked up. */
let asked: string[]

async function opened(answer: (domain: string) => Promise<DomainReportJson>): Promise<void> {
  world = await ApiWorld.open('memory', configFrom(SETTINGS, 'relay.example'))
  screens = new PageScreens(world)
  asked = []
  world.answer = ({ domain, from }) => (asked.push(`${domain} for ${from}`), answer(domain))
}
afterEach(() => world.close())

const order = (domain: string, from: string) => screens.location('POST', 'domain-check', { domain, from })

/** The text of a screen without its markup. */
const wordsOf = (markup: string): string => markup.replaceAll(/<[^>]*>/g, '').replaceAll(/\s+/g, ' ')

test('a check is made by its order alone, and its report follows by itself', async () => {
  const report = Promise.withResolvers<DomainReportJson>()
  await opened(() => report.promise)
  await world.queue.accept(['ann@far.example'], { sender: 'news@a.shop.example' })
  await world.queue.rest()
  const list = wordsOf(await screens.text('deliverability'))
  expect(list).toContain('us.example and a.shop.example are not checked.')
  expect(list).toContain('s1 of shop.example, s2 of shop.example does not sign yet')
  expect(wordsOf(await screens.text('deliverability/us.example'))).toContain('Not checked for mail of us.example in the last 7 days.')
  expect(await screens.text('domain-check')).toMatch(/name="domain"[^>]* required/s)
  const panel = await screens.text('domain-check?domain=US.example&from=us.example')
  expect(panel).toMatch(/<form method="post" action="\.\/domain-check">/)
  expect(panel).toContain('deferd check domain us.example --from us.example')
  expect(asked).toEqual([])

  expect(await order('us.example', 'us.example')).toBe('deliverability/us.example')
  expect(asked).toEqual(['us.example for us.example'])
  const running = await screens.text('deliverability/us.example')
  expect(running).toContain('data-state="running"')
  expect(running).toContain('data-live-path="api/v1/domain-checks/us.example?from=us.example"')
  expect(running).toContain('<noscript><meta http-equiv="refresh" content="2" /></noscript>')
  expect(running).not.toContain('Check now')

  report.resolve({ ...goldenReport('good.example'), domain: 'us.example' })
  await expect.poll(() => screens.text('deliverability/us.example')).toContain('The way of mail')
  const found = await screens.text('deliverability/us.example')
  expect(found).not.toMatch(/data-state="running"|http-equiv="refresh"|data-live-path/)
  for (const title of ['What receivers see of us', 'What the domain publishes', 'The way of mail'])
    expect(found).toContain(`<h2>${title}</h2>`)
  expect(wordsOf(found)).toContain('looked up by api; the last check was ordered by page:ann (127.0.0.1).')
  expect(wordsOf(await screens.text('deliverability'))).toContain('a.shop.example is not checked.')
  expect(asked).toHaveLength(1)
})

test('another domain is checked for the mail of ours', async () => {
  await opened(async () => goldenReport('expired-policy.example'))
  expect(await order('far.example', 'us.example')).toBe('deliverability/far.example?from=us.example')
  await expect.poll(() => screens.text('deliverability')).toContain('Other checks')
  const found = wordsOf(await screens.text('deliverability/far.example?from=us.example'))
  expect(found).toContain('For mail of us.example')
  expect(found).toContain('MTA-STS is wrong;')
  await expect(screens.text('deliverability/far%20example')).rejects.toThrow('expected the name of a domain')
})

test('a domain that is none is asked for again, with what was filled in', async () => {
  await opened(async () => goldenReport('good.example'))
  const labels = 'a'.repeat(70)
  for (const [domain, from, problem] of [
    ['user@x.example', 'us.example', 'Recipient domain: expected the name of a domain, got "user@x.example".'],
    ['not a domain', 'us.example', 'Recipient domain: expected the name of a domain, got "not a domain".'],
    [labels, 'us.example', `Recipient domain: expected the name of a domain, got "${labels}".`],
    ['', 'us.example', 'Recipient domain: expected the name of a domain, got "".'],
    ['far.example', 'no sender', 'Domain of senders: expected an address or a domain, got "no sender".'],
  ] as const) {
    const form = await screens.sent('domain-check', { domain, from })
    expect([domain, form.status]).toEqual([domain, 422])
    expect(wordsOf(form.text).replaceAll('&quot;', '"')).toContain(problem)
    expect(form.text).toMatch(new RegExp(`name="domain"[^>]*value="${domain}"`, 's'))
    expect(form.text).toMatch(new RegExp(`name="from"[^>]*value="${from}"`, 's'))
    expect(form.text).toContain('action="./domain-check"')
  }
  const shown = wordsOf(await screens.text('domain-check?domain=a%20b'))
  expect(shown).toContain('Recipient domain: expected the name of a domain')
  expect(asked).toEqual([])
})

test('records of strangers stay text', async () => {
  const { findings, ...report } = goldenReport('good.example')
  const hostile = HOSTILE_TEXTS.map((text) => ({ what: 'DMARC', verdict: 'wrong' as const, text }))
  await opened(async () => ({ ...report, mail: { ...report.mail, text: HOSTILE_TEXTS[0] ?? '' }, findings: [...hostile, ...findings] }))
  await order('us.example', 'us.example')
  await expect.poll(() => screens.text('deliverability/us.example')).toContain('The way of mail')
  for (const path of ['deliverability', 'deliverability/us.example']) {
    const markup = await screens.text(path)
    const tags = markup.match(/<[^>]*>/g) ?? []
    const bare = tags.map((tag) => tag.replaceAll(/"[^"]*"/g, '""'))
    expect(bare.filter((tag) => /^<(?:img|iframe|base|b)\b|\son\w+=|srcdoc/.test(tag))).toEqual([])
    expect(tags.filter((tag) => /^<script(?![^>]* src="\.)/.test(tag) || tag.includes('evil.example'))).toEqual([])
    for (const control of ['\u202e', '\u2066', '\u0007', '\u001b']) expect(markup).not.toContain(control)
  }
})

test('a viewer has no button, and a limited session no screen', async () => {
  await opened(async () => goldenReport('good.example'))
  const viewer = { ...ADMIN, role: 'viewer' as const }
  for (const path of ['deliverability', 'deliverability/us.example'])
    expect(await screens.text(path, viewer)).not.toContain('domain-check?')
  await expect(screens.text('deliverability', { ...ADMIN, destinations: '*.example.org' })).rejects.toThrow('limited to the destinations')
})

test('a failed check says why, with the report before it', async () => {
  let isFirst = true
  await opened(async () => {
    if (!isFirst) throw new Error('the mail exchangers of us.example changed during the check: repeat it')
    isFirst = false
    return goldenReport('good.example')
  })
  await order('us.example', 'us.example')
  await expect.poll(() => screens.text('deliverability/us.example')).toContain('The way of mail')
  await order('us.example', 'us.example')
  const text = async () => wordsOf(await screens.text('deliverability/us.example'))
  await expect.poll(text).toContain('The last check gave no report: the mail exchangers of us.example changed during the check: repeat it.')
  expect(await text()).toContain('The way of mail')
})

test('sentences', () => {
  const finding = (what: string, verdict: 'ok' | 'note' | 'wrong' | 'unknown') => ({ what, verdict, text: '' })
  expect(findingsSentence([finding('MX', 'ok'), finding('SPF', 'ok'), finding('DKIM', 'ok'), finding('DKIM', 'wrong')])).toBe(
    'DKIM is wrong; MX and SPF are in order.',
  )
  expect(findingsSentence([finding('host', 'ok'), finding('limits', 'ok')])).toBe('Host and limits are in order.')
  expect(findingsSentence([finding('MX', 'wrong'), finding('limits', 'ok')])).toBe('MX is wrong; limits are in order.')
  expect(findingsSentence([finding('A', 'note'), finding('B', 'unknown'), finding('C', 'unknown'), finding('D', 'unknown')])).toBe(
    'B, C and D could not be looked up; A has a note.',
  )
  const domain = (
    name: string,
    check: { readonly state: 'running' | 'done' | 'failed'; readonly verdict: 'ok' | 'wrong' | null } | null,
  ) => ({ sender_domain: name, check })
  const done = (verdict: 'ok' | 'wrong') => ({ state: 'done', verdict }) as const
  expect(domainsSentence([domain('a.example', done('ok'))])).toBe('Nothing is wrong with the domains of senders as of their last checks.')
  expect(domainsSentence([domain('a.example', done('wrong')), domain('b.example', null)])).toBe(
    'a.example has something wrong; b.example is not checked.',
  )
  expect(checkState({ state: 'failed', verdict: null })).toBe('failed')
  expect(checkState({ state: 'failed', verdict: 'ok' })).toBe('ok')
})

test('a domain that is wrong because its destination is suspended has that as its problem', async () => {
  const report = goldenReport('good.example')
  const text = 'mail to good.example now: waits, because the destination is suspended by root; then sent'
  await opened(async () => ({ ...report, verdict: 'wrong', mail: { ...report.mail, waits: true, verdict: 'wrong', text } }))
  await order('good.example', 'us.example')
  await expect.poll(async () => wordsOf(await screens.text('deliverability'))).toContain(`mail: ${text}`)
})
