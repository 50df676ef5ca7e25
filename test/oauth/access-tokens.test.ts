import { describe, expect, test } from 'vitest'
import { AccessTokens } from '../../src/oauth/access-tokens.ts'
import type { OauthClient } from '../../src/oauth/oauth-client.ts'
import type { TokenAnswer } from '../../src/oauth/token-answer.ts'
import { HOUR, MINUTE, SECOND } from '../../src/system/clock.ts'
import { TimeDriver } from '../../src/testkit/virtual/time-driver.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { oauthClient, oauthTable } from '../support/oauth-clients.ts'

const TABLE = { provider: 'microsoft', tenant: 't', grant: 'client_credentials', client_id: 'app', client_secret_file: '/s' }
const GOOGLE = { provider: 'google', grant: 'service_account', service_account_file: '/k' }
const client = (secret = 'one', members: object = {}): OauthClient =>
  oauthClient(oauthTable({ ...TABLE, ...members }), { proof: { kind: 'secret', secret } })

const secretOf = ({ proof }: OauthClient): string => (proof.kind === 'secret' ? proof.secret : '')

/** Tokens of an authority whose answers can be replaced. */
class Site {
  readonly clock = new VirtualClock()
  readonly asked: string[] = []
  answer: () => TokenAnswer = () => ({ kind: 'token', token: `t${this.asked.length}`, lifetime: HOUR })
  readonly tokens: AccessTokens
  readonly #driver = new TimeDriver(this.clock, {})

  constructor(clients: Readonly<Record<string, OauthClient>> = { m365: client() }) {
    const request = async (asking: OauthClient, user: string): Promise<TokenAnswer> => {
      this.asked.push(`${asking.table.name} ${user} ${secretOf(asking)}`)
      return this.answer()
    }
    this.tokens = new AccessTokens({ clock: this.clock, request }, new Map(Object.entries(clients)))
  }

  get(user = 'ann', name = 'm365'): Promise<string> {
    return this.tokens.of(name).get(user)
  }

  replacement(refused: string): Promise<string | null> {
    return this.tokens.of('m365').replacement('ann', refused)
  }

  pass(time: number): Promise<void> {
    return this.#driver.runUntil(this.clock.now() + time)
  }
}

test('one request serves all callers, and all users of an application', async () => {
  const site = new Site()
  expect(await Promise.all([site.get(), site.get(), site.get('bob')])).toEqual(['t1', 't1', 't1'])
  expect(site.asked).toEqual(['m365  one'])
})

test('a service account has a token for each mailbox', async () => {
  const site = new Site({ google: oauthClient(oauthTable(GOOGLE, 'google')) })
  expect(await Promise.all([site.get('ann', 'google'), site.get('bob', 'google')])).toHaveLength(2)
  expect(site.asked).toEqual(['google ann ', 'google bob '])
})

test('a token is renewed at 80 % of its lifetime, and after a day without a use no more', async () => {
  const site = new Site()
  await site.get()
  await site.pass(48 * MINUTE)
  expect(site.asked).toHaveLength(2)
  expect(await site.get()).toBe('t2')
  await site.pass(48 * HOUR)
  const after = site.asked.length
  expect(after).toBeLessThan(2 + (25 * HOUR) / (48 * MINUTE))
  await site.pass(48 * HOUR)
  expect(site.asked).toHaveLength(after)
  expect(await site.get()).toBe(`t${after + 1}`)
})

describe('a refused token', () => {
  test('is replaced once in 5 minutes', async () => {
    const site = new Site()
    expect([await site.get(), await site.replacement('t1'), await site.replacement('t2'), await site.get()]).toEqual([
      't1',
      't2',
      null,
      't2',
    ])
    await site.pass(5 * MINUTE)
    expect(await site.replacement('t2')).toBe('t3')
    expect(site.asked).toHaveLength(3)
  })

  test('that was replaced meanwhile makes no request', async () => {
    const site = new Site()
    await site.get()
    await site.replacement('t1')
    expect(await site.replacement('t1')).toBe('t2')
    expect(site.asked).toHaveLength(2)
  })

  test('200 times at once makes one request', async () => {
    const site = new Site()
    await site.get()
    expect(new Set(await Promise.all(Array.from({ length: 200 }, () => site.replacement('t1'))))).toEqual(new Set(['t2']))
    expect(site.asked).toHaveLength(2)
  })

  test('that comes again stands', async () => {
    const site = new Site()
    site.answer = () => ({ kind: 'token', token: 'same', lifetime: HOUR })
    expect([await site.get(), await site.replacement('same')]).toEqual(['same', null])
  })
})

describe('after a failure', () => {
  const AWAY: TokenAnswer = { kind: 'temporary', why: 'id.example: away' }

  test('the authority is asked in the background after 5 s, doubled to 5 minutes, and no more by callers', async () => {
    const site = new Site()
    site.answer = () => AWAY
    for (let n = 0; n < 5; n++) await expect(site.get()).rejects.toThrow('oauth.m365: id.example: away: it is asked again')
    expect(site.asked).toHaveLength(1)
    await site.pass(35 * SECOND)
    expect(site.asked).toHaveLength(4)
    await site.pass(HOUR)
    expect(site.asked.length).toBeLessThan(4 + 20)
    expect(site.tokens.states()).toMatchObject([{ name: 'm365', left: null, problem: expect.stringContaining('away') as string }])
  })

  test('of a renewal the old token is used until 30 s before its end', async () => {
    const site = new Site()
    await site.get()
    site.answer = () => AWAY
    await site.pass(HOUR - 31 * SECOND)
    expect(await site.get()).toBe('t1')
    await site.pass(2 * SECOND)
    await expect(site.get()).rejects.toThrow('away')
  })

  test('a request that throws is a failure too', async () => {
    const site = new Site()
    site.answer = () => {
      throw new Error('no key')
    }
    await expect(site.get()).rejects.toThrow('no key')
  })
})

describe('a reload', () => {
  const configure = (site: Site, changed: OauthClient) => site.tokens.configure(new Map([['m365', changed]]))

  test('keeps the token of an unchanged table, and uses a new secret at the next request', async () => {
    const site = new Site()
    await site.get()
    configure(site, client('two'))
    expect(await site.get()).toBe('t1')
    await site.pass(48 * MINUTE)
    expect(site.asked).toEqual(['m365  one', 'm365  two'])
  })

  test('ends the pause after a refusal', async () => {
    const site = new Site()
    site.answer = () => ({ kind: 'refused', error: 'invalid_client', why: 'invalid_client' })
    await expect(site.get()).rejects.toThrow('invalid_client: correct client_id')
    await site.pass(14 * MINUTE)
    await expect(site.get()).rejects.toThrow('invalid_client')
    expect(site.asked).toHaveLength(1)
    site.answer = () => ({ kind: 'token', token: 'good', lifetime: HOUR })
    configure(site, client('two'))
    expect(await site.get()).toBe('good')
    expect(site.asked).toEqual(['m365  one', 'm365  two'])
  })

  test('drops the token of another application, and of another login', async () => {
    const site = new Site()
    await site.get()
    configure(site, client('one', { client_id: 'other' }))
    expect(await site.get()).toBe('t2')
    configure(site, { ...client('one', { client_id: 'other' }), refreshToken: 'of another login' })
    expect(await site.get()).toBe('t3')
    await site.pass(HOUR)
    expect(site.asked).toHaveLength(4)
  })

  test('without the table ends its tokens', async () => {
    const site = new Site()
    await site.get()
    site.tokens.configure(new Map())
    await expect(site.get()).rejects.toThrow('there is no table [oauth.m365]')
    await site.pass(2 * HOUR)
    expect(site.asked).toHaveLength(1)
  })
})
