/** The places of the navigation. */
import { expect, test } from 'vitest'
import { QUEUE_PLACES, SYSTEM_PLACES } from '../../src/page/markup/navigation.ts'

test('each place has a path and a key of its own', () => {
  const places = [...QUEUE_PLACES, ...SYSTEM_PLACES]
  for (const member of [0, 1, 2] as const) expect(new Set(places.map((place) => place[member])).size).toBe(places.length)
})
