/** Contract of the store: what keys have charged to quotas, which all nodes share. */
import { expect, test } from 'vitest'
import type { QuotaCharge } from '../../src/store/records/quota-count.ts'
import { HOUR } from '../../src/system/clock.ts'
import { mail, MIN, T0, type Subject } from './mail.ts'

const charge = (more: Partial<QuotaCharge> = {}): QuotaCharge => ({
  quota: 'app',
  key: 'ann@us.example',
  span: HOUR,
  begin: T0,
  messages: 1,
  recipients: 2,
  until: T0 + HOUR + 5 * MIN,
  ...more,
})

const APP = { quota: 'app', key: 'ann@us.example' }

export function quotaCounts(subject: () => Subject): void {
  const counts = () => subject().store.records.quotaCounts
  const read = (now = T0, use = APP) => subject().reader.records.quotaCounts.of(use, now)

  test('a message is charged with its acceptance, once for each slice', async () => {
    const next = charge({ begin: T0 + 5 * MIN, until: T0 + HOUR + 10 * MIN })
    const { store } = subject()
    await store.enqueue({ ...mail(store), charges: [next, charge()] })
    const several = [mail(store), mail(store)].map((one) =>
      store.enqueue({ ...one, charges: [charge(), charge({ key: 'bob@us.example' })] }),
    )
    await Promise.all(several)
    expect(await read()).toEqual([charge({ messages: 3, recipients: 6 }), next])
    expect(await counts().of({ ...APP, key: 'bob@us.example' }, T0)).toEqual([
      charge({ key: 'bob@us.example', messages: 2, recipients: 4 }),
    ])
  })

  test('a message that is not queued charges nothing', async () => {
    const { store } = subject()
    const one = { ...mail(store), charges: [charge()] }
    await store.enqueue(one)
    await expect(store.enqueue(one)).rejects.toThrow()
    expect(await read()).toEqual([charge()])
  })

  test('charges are taken back by others below 0', async () => {
    await counts().charge([charge(), charge({ span: 2 * HOUR })])
    await counts().charge([charge({ messages: -1, recipients: -2 }), charge({ span: 2 * HOUR, messages: -3, recipients: 0 })])
    expect(await read()).toEqual([charge({ messages: 0, recipients: 0 }), charge({ span: 2 * HOUR, messages: -2, recipients: 2 })])
  })

  test('slices that are in no window do not count, and are deleted', async () => {
    await counts().charge([charge()])
    const { until } = charge()
    expect(await read(until - 1)).toEqual([charge()])
    expect(await read(until)).toEqual([])
    await counts().prune({ now: until - 1 })
    expect(await counts().any()).toBe(true)
    await counts().prune({ now: until })
    expect(await subject().reader.records.quotaCounts.any()).toBe(false)
  })

  test('the keys of a quota are read by their messages, and the counts of one are deleted', async () => {
    const of = (key: string, messages: number) => charge({ key, messages })
    await counts().charge([of('a', 3), of('b', 5), of('c', 3), charge({ quota: 'other', key: 'd', messages: 9 })])
    const fullest = async (limit: number) => (await counts().fullest({ quota: 'app', now: T0, limit })).map(({ key }) => key)
    expect(await fullest(10)).toEqual(['b', 'a', 'c'])
    expect(await fullest(2)).toEqual(['b', 'a'])
    await counts().forget({ quota: 'app', key: 'b' })
    expect(await fullest(10)).toEqual(['a', 'c'])
  })
}
