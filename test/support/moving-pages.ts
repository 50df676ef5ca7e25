/** Reads all pages of a listing over HTTP while mail arrives and leaves; used by the short and the long test. */
import { expect } from 'vitest'
import type { ApiWorld } from './api-world.ts'

export interface MovingMail {
  readonly messages: number
  /** Messages that arrive and leave during the listing. */
  readonly arriving: number
  readonly leaving: number
  /** Messages per page. */
  readonly limit: number
}

/** Expects that each message that stays is listed exactly once, and none that came after the first page. */
export async function pagesOfMovingMail({ queue, api }: ApiWorld, { messages, arriving, leaving, limit }: MovingMail): Promise<void> {
  const [kept, gone]: [string[], string[]] = [[], []]
  // The messages that leave are spread over the whole queue.
  for (let n = 0; n < messages; n++) {
    const leaves = Math.floor(((n + 1) * leaving) / messages) > Math.floor((n * leaving) / messages)
    ;(leaves ? gone : kept).push(await queue.accept([`user${n}@a.example.org`]))
  }
  await queue.rest()
  const [arrivals, departures] = [arriving, leaving].map((count) => Math.ceil((count * limit) / messages))
  const seen: string[] = []
  for (let path: string | null = `/messages?limit=${limit}`; path !== null;) {
    const { json, headers } = await api.get(path)
    seen.push(...json.messages.map((one) => one.queue_id))
    for (let n = 0; n < (arrivals ?? 0); n++) await queue.accept(['late@a.example.org'])
    const left = gone.splice(0, departures)
    if (left.length > 0) await queue.operate('delete', left)
    const link: string | undefined = /^<(\?[^>]*)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1]
    expect(link === undefined).toBe(json.next === null)
    path = link === undefined ? null : `/messages${link}`
  }
  expect(gone).toEqual([])
  expect(new Set(seen).size).toBe(seen.length)
  expect(seen.filter((id) => kept.includes(id))).toEqual(kept)
  expect(seen.length).toBeLessThanOrEqual(messages)
}
