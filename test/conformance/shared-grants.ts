/** Contract of the store: rotating refresh tokens, which all nodes share. */
import { expect, test } from 'vitest'
import type { SharedGrant } from '../../src/oauth/shared-grant.ts'
import { MIN, T0, type Subject } from './mail.ts'

/** The grant of a generation. */
export const grant = (generation: number, more: Partial<SharedGrant> = {}): SharedGrant => ({
  refreshToken: `refresh-${generation}`,
  accessToken: `access-${generation}`,
  expiresAt: T0 + generation * MIN,
  generation,
  origin: 'f'.repeat(64),
  ...more,
})

const NOW = { now: T0, until: T0 + MIN }

export function refreshTokens(subject: () => Subject): void {
  test('a claim excludes others until it is released, or its time has come', async () => {
    const { store } = subject()
    expect(await store.records.grants.claim('m365', 'ann', NOW)).toBe(true)
    expect(await store.records.grants.claim('m365', 'ann', { now: T0 + MIN - 1, until: T0 + 2 * MIN })).toBe(false)
    expect(await store.records.grants.claim('m365', 'bob', NOW)).toBe(true)
    expect(await store.records.grants.claim('google', 'ann', NOW)).toBe(true)
    expect(await store.records.grants.claim('m365', 'ann', { now: T0 + MIN, until: T0 + 2 * MIN })).toBe(true)
    expect(await store.records.grants.claim('m365', 'ann', { now: T0 + MIN, until: T0 + 2 * MIN })).toBe(false)
    await store.records.grants.release('m365', 'ann')
    expect(await store.records.grants.claim('m365', 'ann', { now: T0 + MIN, until: T0 + 2 * MIN })).toBe(true)
    // A claim is no grant.
    expect(await store.records.grants.read('m365', 'ann')).toBeNull()
    await store.records.grants.release('m365', 'never claimed')
    expect(await store.records.grants.read('m365', 'never claimed')).toBeNull()
  })

  test('a new generation replaces the one before it, and ends the claim', async () => {
    const { store, reader } = subject()
    await store.records.grants.claim('m365', 'ann', NOW)
    expect(await store.records.grants.replace('m365', 'ann', grant(1))).toBe(true)
    expect(await store.records.grants.read('m365', 'ann')).toEqual(grant(1))
    expect(await store.records.grants.claim('m365', 'ann', NOW)).toBe(true)
    const second = grant(2, { accessToken: null, refreshToken: 'r'.repeat(4_000), origin: 'another' })
    expect(await store.records.grants.replace('m365', 'ann', second)).toBe(true)
    expect(await store.records.grants.read('m365', 'ann')).toEqual(second)
    // Without a claim and without a row: the generation decides.
    expect(await store.records.grants.replace('google', '', grant(1))).toBe(true)
    expect(await reader.records.grants.all()).toEqual([
      { name: 'google', user: '', ...grant(1) },
      { name: 'm365', user: 'ann', ...second },
    ])
  })

  test('a generation that does not follow that of the row changes nothing, the claim neither', async () => {
    const { store } = subject()
    expect(await store.records.grants.replace('m365', 'ann', grant(2))).toBe(false)
    expect(await store.records.grants.read('m365', 'ann')).toBeNull()
    await store.records.grants.claim('m365', 'ann', NOW)
    expect(await store.records.grants.replace('m365', 'ann', grant(2))).toBe(false)
    await store.records.grants.replace('m365', 'ann', grant(1))
    await store.records.grants.claim('m365', 'ann', NOW)
    for (const generation of [1, 3])
      expect(await store.records.grants.replace('m365', 'ann', grant(generation, { refreshToken: 'late' }))).toBe(false)
    expect(await store.records.grants.read('m365', 'ann')).toEqual(grant(1))
    expect(await store.records.grants.claim('m365', 'ann', NOW)).toBe(false)
  })

  test('of two calls at once, one has the claim and one stores its answer', async () => {
    const { store } = subject()
    const claims = await Promise.all([store.records.grants.claim('m365', 'ann', NOW), store.records.grants.claim('m365', 'ann', NOW)])
    expect(claims.filter(Boolean)).toEqual([true])
    const answers = [grant(1, { refreshToken: 'a' }), grant(1, { refreshToken: 'b' })]
    const stored = await Promise.all(answers.map((one) => store.records.grants.replace('m365', 'ann', one)))
    expect(stored.filter(Boolean)).toEqual([true])
    expect(await store.records.grants.read('m365', 'ann')).toEqual(answers[stored.indexOf(true)])
  })
}

export function refreshTokensAcrossRestarts(subject: () => Subject, replace: (next: Subject) => void): void {
  test('a refresh token that was stored survives a crash at once; a claim ends with its owner, or with several nodes at its time', async () => {
    const { store, crash, shared } = subject()
    if (crash === undefined) throw new Error('this store dies with its owner')
    await store.records.grants.replace('m365', 'ann', grant(1))
    await store.records.grants.claim('m365', 'ann', NOW)
    await store.records.grants.replace('m365', 'ann', grant(2))
    await store.records.grants.claim('m365', 'ann', NOW)
    const next = await crash()
    replace(next)
    expect(await next.store.records.grants.read('m365', 'ann')).toEqual(grant(2))
    expect(await next.store.records.grants.claim('m365', 'ann', NOW)).toBe(shared === undefined)
    expect(await next.store.records.grants.claim('m365', 'ann', { now: T0 + MIN, until: T0 + 2 * MIN })).toBe(true)
    expect(await next.store.records.grants.replace('m365', 'ann', grant(3))).toBe(true)
  })
}
