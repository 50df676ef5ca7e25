/** The authorization server of a world, and the mail servers that take its tokens. */
import { describe, expect, test } from 'vitest'
import { askAuthority, type AuthorityReply } from '../../../src/oauth/authority.ts'
import {
  createWorld,
  WORLD_CA,
  type Authority,
  type AuthorityOptions,
  type ProtectionOptions,
  type World,
} from '../../../src/testkit/index.ts'
import { oauthbearer, TlsClient, xoauth2 } from '../../support/tls-client.ts'

const HOP = 'smtp.office365.com'
const USER = 'app@contoso.example'
const CREDENTIALS = {
  grant_type: 'client_credentials',
  client_id: 'app',
  client_secret: 's3cret',
  scope: 'https://outlook.office365.com/.default',
}
const OPTIONS: AuthorityOptions = { clients: { app: { secret: 's3cret' } } }

const ask = (world: World, authority: Authority, form: Readonly<Record<string, string>> = CREDENTIALS): Promise<AuthorityReply> =>
  askAuthority(world, WORLD_CA)(authority.tokenUrl, new URLSearchParams(form))

async function tokenOf(world: World, authority: Authority, form?: Readonly<Record<string, string>>): Promise<string> {
  const reply = await ask(world, authority, form)
  if (reply.kind === 'failed') throw new Error(reply.why)
  return (JSON.parse(reply.body) as { access_token: string }).access_token
}

async function dial(world: World, host = HOP): Promise<TlsClient> {
  const found = await world.net.lookupAddresses(host, 4)
  const address = found.kind === 'found' ? (found.records[0] ?? '') : ''
  return TlsClient.open(await world.net.dialFrom('127.0.0.1', { address, port: 587 }), host, WORLD_CA)
}

/** Replies to EHLO, AUTH, MAIL, RCPT, DATA and the content. */
async function session(world: World, auth: string, { sender = USER, host = HOP } = {}): Promise<readonly string[]> {
  const client = await dial(world, host)
  const replies = []
  const content = 'Subject: hi\r\n\r\nhi\r\n.'
  for (const line of ['EHLO client.example', `AUTH ${auth}`, `MAIL FROM:<${sender}>`, 'RCPT TO:<ann@far.example>', 'DATA', content]) {
    const reply = await client.say(line)
    replies.push(reply)
    if (/^[45]/.test(reply)) break
  }
  client.close()
  return replies
}

async function lastReply(protection: ProtectionOptions, options: AuthorityOptions = OPTIONS, sender = USER): Promise<string | undefined> {
  await using world = await createWorld()
  const authority = world.authority(options).protects(HOP, protection)
  const token = await tokenOf(world, authority)
  return (await session(world, `XOAUTH2 ${xoauth2(USER, token)}`, { sender })).at(-1)
}

test('a mail server takes mail after a login with a token of the authority, inside TLS only', async () => {
  await using world = await createWorld()
  const authority = world.authority(OPTIONS).protects(HOP, { mailboxes: { [USER]: {} } })
  const token = await tokenOf(world, authority)
  const replies = await session(world, `XOAUTH2 ${xoauth2(USER, token)}`)
  expect(replies[0]).toMatch(/\n250 AUTH LOGIN XOAUTH2$/)
  expect(replies.slice(1)).toEqual([
    '235 2.7.0 Authentication successful',
    '250 2.1.0 Ok',
    '250 2.1.5 Ok',
    '354 End data with <CR><LF>.<CR><LF>',
    '250 2.0.0 Ok: queued as 1',
  ])
  expect(world.mailbox('ann@far.example').mails()).toHaveLength(1)
  expect(authority.requests()).toMatchObject([{ at: 0, grant: 'client_credentials', client: 'app', status: 200, form: CREDENTIALS }])
  expect(authority.secrets()).toEqual(['s3cret', token])
  // The history of the world has neither.
  expect(JSON.stringify(world.history().trace)).not.toMatch(new RegExp(`s3cret|${token}`))
  expect(world.history().events.map(({ event }) => event)).toContainEqual({
    event: 'authority',
    host: 'login.microsoftonline.com',
    grant: 'client_credentials',
    oauth_client: 'app',
    status: 200,
  })
})

test('without a login MAIL gets 530, a password 535, and before TLS there is no AUTH', async () => {
  await using world = await createWorld()
  world.authority(OPTIONS).protects(HOP)
  const client = await dial(world)
  await client.say('EHLO client.example')
  expect(await client.say(`MAIL FROM:<${USER}>`)).toMatch(/^530 5\.7\.57 Client not authenticated to send mail\./)
  expect(await client.say('AUTH LOGIN')).toBe('334 VXNlcm5hbWU6')
  expect(await client.say('YXBw')).toBe('334 UGFzc3dvcmQ6')
  expect(await client.say('cGFzcw==')).toMatch(/^535 5\.7\.139 Authentication unsuccessful, basic authentication is disabled\./)
  client.close()
})

describe('Exchange refuses', () => {
  const REFUSED = expect.stringMatching(/^535 5\.7\.3 Authentication unsuccessful \[/)

  test('a token that has ended', async () => {
    await using world = await createWorld()
    const authority = world.authority({ ...OPTIONS, lifetime: '1m' }).protects(HOP)
    const token = await tokenOf(world, authority)
    await world.advance('59s')
    expect((await session(world, `XOAUTH2 ${xoauth2(USER, token)}`))[1]).toMatch(/^235/)
    await world.advance('1s')
    expect((await session(world, `XOAUTH2 ${xoauth2(USER, token)}`))[1]).toEqual(REFUSED)
  })

  test('a token of another authority, one for Graph, and text that is no token', async () => {
    await using world = await createWorld()
    const authority = world.authority(OPTIONS).protects(HOP)
    await using other = await createWorld({ seed: 2 })
    const foreign = await tokenOf(other, other.authority(OPTIONS))
    const graph = await tokenOf(world, authority, { ...CREDENTIALS, scope: 'https://graph.microsoft.com/.default' })
    for (const token of [foreign, graph, 'nonsense']) {
      expect((await session(world, `XOAUTH2 ${xoauth2(USER, token)}`))[1]).toEqual(REFUSED)
    }
    expect((await session(world, 'XOAUTH2 bm9uc2Vuc2U='))[1]).toEqual(REFUSED)
  })

  test.each<[string, AuthorityOptions['clients'], ProtectionOptions]>([
    ['an application without the role', { app: { secret: 's3cret', roles: [] } }, {}],
    ['an application without a service principal', { app: { secret: 's3cret', servicePrincipal: false } }, {}],
    ['a user without a mailbox', OPTIONS.clients, { mailboxes: { 'bob@contoso.example': {} } }],
  ])('%s', async (_, clients, protection) => {
    expect(await lastReply(protection, { clients })).toEqual(REFUSED)
  })

  test('any login while SMTP AUTH is switched off for the tenant or the mailbox', async () => {
    const off = (what: string) =>
      expect.stringMatching(new RegExp(`^535 5\\.7\\.139 .*SmtpClientAuthentication is disabled for the ${what}\\. Visit`))
    expect(await lastReply({ smtpAuth: false })).toEqual(off('Tenant'))
    expect(await lastReply({ mailboxes: { [USER]: { smtpAuth: false } } })).toEqual(off('Mailbox'))
  })

  test('a sender without the right after the content, and an application without access to the mailbox for now', async () => {
    const mailboxes = { [USER]: { sendAs: ['*@news.example'] }, 'bob@contoso.example': {} }
    expect(await lastReply({ mailboxes }, OPTIONS, 'letter@news.example')).toMatch(/^250/)
    expect(await lastReply({ mailboxes }, OPTIONS, 'bob@contoso.example')).toMatch(
      /^554 5\.2\.252 SendAsDenied; app@contoso\.example not allowed to send as bob@contoso\.example; STOREDRV/,
    )
    expect(await lastReply({ mailboxes }, OPTIONS, 'x@other.example')).toMatch(
      /^550 5\.7\.60 SMTP; Client does not have permissions to send as/,
    )
    expect(await lastReply({ mailboxes: { [USER]: { fullAccess: ['other'] } } })).toMatch(/^430 4\.2\.0 STOREDRV; mailbox logon failure;/)
  })

  test('a person in place of another one', async () => {
    await using world = await createWorld()
    const authority = world.authority({ clients: { phone: {} } }).protects(HOP)
    const token = await tokenOf(world, authority, {
      grant_type: 'refresh_token',
      client_id: 'phone',
      refresh_token: authority.logIn('phone', USER),
    })
    expect((await session(world, `XOAUTH2 ${xoauth2('APP@contoso.example', token)}`))[1]).toMatch(/^235/)
    expect((await session(world, `XOAUTH2 ${xoauth2('bob@contoso.example', token)}`))[1]).toEqual(REFUSED)
  })
})

test('Gmail tells the reason of a refusal in a challenge, which the client has to answer', async () => {
  await using world = await createWorld()
  const authority = world.authority({ provider: 'google', clients: { desktop: { secret: 'x' } } }).protects('smtp.gmail.com')
  const form = { grant_type: 'refresh_token', client_id: 'desktop', client_secret: 'x', refresh_token: authority.logIn('desktop', USER) }
  const token = await tokenOf(world, authority, form)
  for (const auth of [`XOAUTH2 ${xoauth2(USER, token)}`, `OAUTHBEARER ${oauthbearer(USER, token)}`]) {
    expect((await session(world, auth, { host: 'smtp.gmail.com' }))[1]).toMatch(/^235/)
  }
  for (const [auth, answer, status] of [
    [`XOAUTH2 ${xoauth2(USER, 'wrong')}`, '', '400'],
    [`OAUTHBEARER ${oauthbearer(USER, 'wrong')}`, 'AQ==', 'invalid_token'],
  ] as const) {
    const client = await dial(world, 'smtp.gmail.com')
    await client.say('EHLO client.example')
    const challenge = await client.say(`AUTH ${auth}`)
    expect(JSON.parse(Buffer.from(challenge.slice(4), 'base64').toString())).toEqual({
      status,
      schemes: 'bearer',
      scope: 'https://mail.google.com/',
    })
    expect(await client.say(answer)).toMatch(/^535-5\.7\.8 Username and Password not accepted/)
    await client.say(`AUTH ${auth}`)
    expect(await client.say('nonsense')).toBe('501 5.5.2 Error: expected an empty line or AQ== after the challenge')
    client.close()
  }
})

describe('failures of the authority', () => {
  test('last for a time or a number of requests, and end with recovers', async () => {
    await using world = await createWorld()
    const authority = world.authority(OPTIONS)
    const status = async () => {
      const reply = await ask(world, authority)
      return reply.kind === 'reply' ? reply.status : reply.why
    }
    authority.fails('invalid_client', { first: 1 }).fails('unavailable', { for: '10m' })
    expect(await status()).toBe(503)
    await world.advance('10m')
    expect([await status(), await status()]).toEqual([401, 200])
    authority.isDownFor('30m')
    expect(await status()).toMatch(/ECONNREFUSED/)
    await world.advance('30m')
    expect(await status()).toBe(200)
    authority.fails('closed')
    expect(await status()).toMatch(/^login\.microsoftonline\.com: /)
    authority.fails('oversized')
    expect(await status()).toMatch(/larger than 65536 bytes/)
    authority.recovers()
    expect(await status()).toBe(200)
    expect(authority.requests().map((request) => [request.at, request.status, request.rule])).toEqual([
      [0, 503, 'fails unavailable'],
      [600, 401, 'fails invalid_client'],
      [600, 200, undefined],
      [2400, 200, undefined],
      [2400, null, 'fails closed'],
      [2400, 200, 'fails oversized'],
      [2400, 200, undefined],
    ])
  })

  test('delay the answer in virtual time', async () => {
    await using world = await createWorld()
    const authority = world.authority(OPTIONS).isSlow('20s')
    let answered = 0
    const asked = ask(world, authority).then(() => (answered = world.now()))
    const begun = world.now()
    await world.advance('19s')
    expect(answered).toBe(0)
    await world.advance('1s')
    await asked
    expect(answered - begun).toBe(20_000)
    authority.isSlow('31s')
    const limited = ask(world, authority)
    await world.advance('40s')
    expect(await limited).toMatchObject({ kind: 'failed' })
  })

  test('come from a list, a function or the script of the world', async () => {
    await using world = await createWorld({ script: '[authority.outage]\nfails = "server_error"\nfrom = "1h"\nuntil = "2h"\n' })
    const listed = world.authority({ ...OPTIONS, failures: ['throttled', null] })
    const statuses = async (authority: Authority, count: number) => {
      const replies = []
      for (let i = 0; i < count; i++) replies.push(await ask(world, authority))
      return replies.map((reply) => (reply.kind === 'reply' ? reply.status : null))
    }
    expect(await statuses(listed, 3)).toEqual([429, 200, 200])
    await world.advance('1h')
    expect(await statuses(listed, 1)).toEqual([500])
    await world.advance('1h')
    const named = world.authority({ ...OPTIONS, failures: ({ client }) => (client === 'app' ? 'no_consent' : null) })
    expect(await statuses(named, 2)).toEqual([400, 400])
  })

  test('an error in the function fails the test', async () => {
    const world = await createWorld()
    const authority = world.authority({
      ...OPTIONS,
      failures: () => {
        throw new Error('of the test')
      },
    })
    expect(await ask(world, authority)).toMatchObject({ status: 500 })
    await expect(world.advance('1s')).rejects.toThrow('of the test')
    await world.close()
  })
})

test('a device logs in when the test approves its code', async () => {
  await using world = await createWorld()
  const authority = world.authority({ clients: { phone: {} }, deviceLifetime: '10m' })
  const scope = 'https://outlook.office.com/SMTP.Send offline_access'
  const begun = await askAuthority(world, WORLD_CA)(authority.deviceUrl, new URLSearchParams({ client_id: 'phone', scope }))
  const { device_code: code, user_code: userCode } = JSON.parse(begun.kind === 'reply' ? begun.body : '{}') as Record<string, string>
  const poll = { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', client_id: 'phone', device_code: code ?? '' }
  expect(await ask(world, authority, poll)).toMatchObject({ status: 400 })
  expect(authority.deviceLogins()).toEqual([{ userCode, client: 'phone', scope, state: 'pending' }])
  authority.approve(userCode ?? '', USER)
  await world.advance('5s')
  expect(await ask(world, authority, poll)).toMatchObject({ status: 200 })
  expect(() => authority.deny(userCode ?? '')).toThrow('no device waits for the code')
})

test.each<[string, (world: World) => unknown, string]>([
  [
    'an unknown option',
    (world) => world.authority({ ...OPTIONS, livetime: '1h' } as never),
    'authority has no option "livetime"; did you mean lifetime?',
  ],
  ['no client', (world) => world.authority({ clients: {} }), 'clients of authority expects at least one client'],
  ['a lifetime that is no time', (world) => world.authority({ ...OPTIONS, lifetime: 'soon' }), 'expected a time such as "5m"'],
  ['a URL as host', (world) => world.authority({ ...OPTIONS, host: 'https://a.example/' }), 'host of authority expects a domain'],
  [
    'a tenant of Google',
    (world) => world.authority({ ...OPTIONS, provider: 'google', tenant: 'x' }),
    'valid with provider "microsoft" only',
  ],
  ['other without a host', (world) => world.authority({ ...OPTIONS, provider: 'other' }), 'expects a host such as "auth.example"'],
  [
    'a certificate that is none',
    (world) => world.authority({ clients: { app: { certificate: 'x' } } }),
    'certificate of client app expects PEM',
  ],
  ['an unknown failure', (world) => world.authority(OPTIONS).fails('sometimes' as never), 'fails expects one of invalid_client, '],
  [
    'an unknown failure in a list',
    (world) => world.authority({ ...OPTIONS, failures: ['no' as never] }),
    'failures of authority expects one of',
  ],
  [
    'a mailbox without a domain',
    (world) => world.authority(OPTIONS).protects(HOP, { mailboxes: { app: {} } }),
    'expects addresses such as',
  ],
  ['a login of an unknown client', (world) => world.authority(OPTIONS).logIn('other', USER), 'logIn expects one of the clients app'],
])('%s is refused', async (_, use, message) => {
  await using world = await createWorld()
  expect(() => use(world)).toThrow(message)
})

test('mistakes in the tables of a script have line and valid values', async () => {
  const script =
    '[authority.a]\nfails = "sometimes"\n[authority.b]\nfrst = 1\n[authority.c]\nfirst = 1\n[authority.d]\nfails = "down"\ngrant = "x"\n'
  await expect(createWorld({ script })).rejects.toThrow(
    /script:2: authority rule a: fails: .*invalid_client[^]*script:4: authority rule b: unknown key frst; did you mean first\?[^]*script:5: authority rule c: has no effect: add fails or delay[^]*script:7: authority rule d: a refused connection has neither/,
  )
})
