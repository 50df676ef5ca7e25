import { expect, test } from 'vitest'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import { emptyQueue } from '../../src/store/memory/queue-state.ts'
import { SharedGrantRenewal } from '../../src/oauth/shared-grant-renewal.ts'
import type { TokenAnswer } from '../../src/oauth/token-answer.ts'
import { MINUTE, SECOND } from '../../src/system/clock.ts'
import { mulberry32 } from '../../src/system/random.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import { driven, LIFETIME, Node, RotatingAuthority } from './rotating-authority.ts'

function setUp() {
  const clock = new VirtualClock()
  const authority = new RotatingAuthority(clock)
  const queue = emptyQueue()
  const file = authority.login()
  const node = (token: string | null = file) => new Node(queue, clock, authority, token)
  const ask = async (one: Node, unlike: string | null = null) => driven(clock, one.renewal.token(unlike))
  const { store } = openMemoryStore(queue)
  const row = () => store.records.grants.read('m365', '')
  /** The access token, which the authority must accept, and which must be stored. */
  const tokenOf = async (one: Node, unlike: string | null = null): Promise<string> => {
    const answer = await ask(one, unlike)
    if (answer?.kind !== 'token') throw new Error(JSON.stringify(answer))
    expect(authority.accepts(answer.token)).toBe(true)
    expect((await row())?.accessToken).toBe(answer.token)
    expect(answer.lifetime).toBeLessThanOrEqual(LIFETIME)
    return answer.token
  }
  return { clock, authority, file, node, row, ask, tokenOf }
}

test('two nodes with one refresh token ask once per lifetime, and use the same access token', async () => {
  const { clock, authority, node, tokenOf } = setUp()
  const nodes = [node(), node()] as const
  let held: (string | null)[] = [null, null]
  for (let hour = 0; hour < 24; hour++) {
    const answers = await Promise.all(nodes.map((one, n) => tokenOf(one, held[n])))
    expect(new Set(answers).size).toBe(1)
    expect(authority.requests).toHaveLength(hour + 1)
    held = answers
    // Renewed in the background at 80 % of the lifetime.
    clock.jumpTo(clock.now() + 0.8 * LIFETIME)
  }
  expect(new Set(authority.requests).size).toBe(24)
})

test('a token serves until 30 s before its end, also a process that starts later; a refused token is replaced at once', async () => {
  const { clock, authority, node, tokenOf } = setUp()
  const first = await tokenOf(node())
  clock.jumpTo(clock.now() + LIFETIME - 31 * SECOND)
  expect(await tokenOf(node())).toBe(first)
  const second = await tokenOf(node(), first)
  expect(second).not.toBe(first)
  expect(await tokenOf(node(), first)).toBe(second)
  expect(authority.requests).toHaveLength(2)
  clock.jumpTo(clock.now() + LIFETIME - 29 * SECOND)
  expect(await tokenOf(node())).not.toBe(second)
})

test('100 kills between the right to ask and the use of the answer: no login is lost', async () => {
  const { clock, authority, node, row, tokenOf } = setUp()
  const random = mulberry32(31)
  let held: string | null = null
  const killed = new Map<number, number>()
  for (let kill = 0; kill < 100; kill++) {
    const step = 3 + Math.floor(random() * 8)
    killed.set(step, (killed.get(step) ?? 0) + 1)
    for (let isKilled = false; !isKilled;) {
      const victim = node()
      victim.diesAfter = step
      const answer: TokenAnswer | undefined = await driven(clock, victim.renewal.token(held), () => victim.isDead)
      isKilled = answer === undefined
      // The answer that the process killed before has stored.
      if (answer?.kind === 'token') held = answer.token
    }
    if (random() < 0.5) held = await tokenOf(node(), held)
    while (clock.pending > 0) clock.runNext()
    clock.jumpTo(clock.now() + Math.floor(random() * 2 * LIFETIME))
  }
  // Begin and end of the claim, of reading the row, of the request, and of the storage.
  expect([...killed.keys()].toSorted((a, b) => a - b)).toEqual([3, 4, 5, 6, 7, 8, 9, 10])
  // Requests that the authority answered, and whose answer was lost.
  expect(authority.requests.length - ((await row())?.generation ?? 0)).toBeGreaterThan(20)
  await tokenOf(node(), held)
})

test('an authority that ends a token before its successor is stored: the token of the file is tried, then a person must log in', async () => {
  const { clock, authority, node, ask, tokenOf } = setUp()
  authority.revokes = true
  const held = await tokenOf(node())
  const victim = node()
  victim.diesAfter = 8
  await driven(clock, victim.renewal.token(held), () => victim.isDead)
  const later = node()
  const before = authority.requests.length
  expect(await ask(later, held)).toEqual({ kind: 'refused', error: 'invalid_grant', why: 'invalid_grant (AADSTS70008)' })
  expect(authority.requests.slice(before)).toEqual([authority.requests[1], authority.requests[0]])
  later.file = authority.login()
  await tokenOf(later, held)
})

test('a claim of a node that is gone ends by time; other nodes wait for it', async () => {
  const { clock, authority, node, tokenOf } = setUp()
  authority.script.push('never')
  const silent = node()
  const waiting = silent.renewal.token(null)
  const began = clock.now()
  await tokenOf(node())
  expect(clock.now() - began).toBeGreaterThanOrEqual(75 * SECOND)
  expect(clock.now() - began).toBeLessThan(80 * SECOND)
  expect(authority.requests).toHaveLength(2)
  silent.diesAfter = 0
  void waiting
})

test('an answer that arrives after the claim has ended does not replace a later one', async () => {
  const { clock, authority, node, row, tokenOf } = setUp()
  authority.latency = 80 * SECOND
  const slow = node()
  const late = slow.renewal.token(null)
  await driven(clock, Promise.resolve())
  const other = node()
  await driven(clock, new Promise<void>((resolve) => clock.after(76 * SECOND, resolve)))
  authority.latency = 0
  const token = await tokenOf(other)
  expect(await driven(clock, late)).toMatchObject({ kind: 'token', token })
  expect((await row())?.generation).toBe(1)
})

test('a failure is returned, and leaves the right to ask to others', async () => {
  const { authority, node, ask, tokenOf } = setUp()
  const away: TokenAnswer = { kind: 'temporary', why: 'login.example: connect ECONNREFUSED' }
  const refused: TokenAnswer = { kind: 'refused', error: 'invalid_client', why: 'invalid_client (AADSTS7000215)' }
  authority.script.push(away, refused)
  const [a, b] = [node(), node()]
  expect(await ask(a)).toEqual(away)
  expect(await ask(b)).toEqual(refused)
  expect(authority.requests).toHaveLength(2)
  await tokenOf(a)
})

test('a new login in the file begins another chain, once, at all nodes', async () => {
  const { authority, node, tokenOf } = setUp()
  const [a, b] = [node(), node()]
  const first = await tokenOf(a)
  await tokenOf(b)
  const login = authority.login()
  a.file = login
  const second = await tokenOf(a)
  expect(second).not.toBe(first)
  expect(authority.requests.at(-1)).toBe(login)
  // A node that has the former file still follows the chain of the other one.
  expect(await tokenOf(b)).toBe(second)
  b.file = login
  expect(await tokenOf(b)).toBe(second)
  expect(await tokenOf(node(login))).toBe(second)
  expect(authority.requests).toHaveLength(2)
})

test('a stored token that is refused: the token of the file is used', async () => {
  const { authority, file, node, tokenOf } = setUp()
  const one = node()
  const held = await tokenOf(one)
  authority.revokeAll()
  const login = authority.login()
  one.file = login
  await tokenOf(one, held)
  expect(authority.requests).toEqual([file, login])

  // A token of the file that is refused: the stored one is used, and goes on to be used.
  one.file = 'copied by mistake'
  const again = await tokenOf(one)
  await tokenOf(one, again)
  expect(authority.requests.slice(2).map((token) => token === 'copied by mistake')).toEqual([true, false, false])
})

test('without a refresh token, no request is sent', async () => {
  const { authority, node, ask } = setUp()
  expect(await ask(node(null))).toMatchObject({ kind: 'refused', why: 'there is no refresh token' })
  expect(authority.requests).toEqual([])
})

test('an authority that does not rotate: the token stays', async () => {
  const { authority, file, node, tokenOf } = setUp()
  for (let n = 0; n < 2; n++) authority.script.push({ kind: 'token', token: `access-${n}`, lifetime: MINUTE })
  const one = node()
  authority.accepts = () => true
  const held = await tokenOf(one)
  await tokenOf(one, held)
  expect(authority.requests).toEqual([file, file])
})

test('while the store fails, a token is not used; its answer is stored when the store is back', async () => {
  const clock = new VirtualClock()
  const authority = new RotatingAuthority(clock)
  authority.revokes = true
  const { store } = openMemoryStore(emptyQueue())
  const grants = store.records.grants
  let isFull = true
  const renewal = new SharedGrantRenewal({
    name: 'm365',
    user: '',
    clock,
    grants: {
      ...grants,
      replace: (...args) => (isFull ? Promise.reject(new Error('the disk is full')) : grants.replace(...args)),
    },
    fileToken: (
      (token) => () =>
        token
    )(authority.login()),
    request: authority.request,
  })
  const why = 'the refresh token in the queue cannot be used: the disk is full'
  for (let n = 0; n < 3; n++) expect(await driven(clock, renewal.token(null))).toEqual({ kind: 'temporary', why })
  isFull = false
  expect(await driven(clock, renewal.token(null))).toMatchObject({ kind: 'token' })
  expect(authority.requests).toHaveLength(1)
})
