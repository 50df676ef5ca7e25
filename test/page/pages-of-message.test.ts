/** A message with hundreds of recipients is pages of 50, the failing ones first. */
import { expect, test } from 'vitest'
import { ApiWorld } from '../support/api-world.ts'
import { wholeWords } from '../support/page-client.ts'
import { PageScreens } from '../support/page-screens.ts'

test('a message with 600 recipients', async () => {
  const world = await ApiWorld.open('memory')
  try {
    const to = Array.from({ length: 600 }, (_, n) => `user${n}@${n % 300 === 7 ? 'ok.example' : 'far.example'}`)
    const id = await world.queue.accept(to)
    await world.queue.advance(1_000)
    const screens = new PageScreens(world)
    const first = await screens.text(`messages/${id}`)
    expect(first).toContain('598 of 600 recipients wait')
    const rows = (page: string): number => page.match(/<tr role="row" class="">/g)?.length ?? 0
    expect(rows(first)).toBeLessThanOrEqual(110)
    expect(Buffer.byteLength(first)).toBeLessThan(200_000)
    expect(first.split('id="attempts"')[0]).not.toContain('@ok.example')
    expect(first).toContain(`href="../messages/${id}?recipients=2&amp;`)
    expect(first).toMatch(/page 1 of 12/)
    expect(wholeWords(await screens.text(`messages/${id}?recipients=12`))).toContain('user307@ok.example')
    for (const odd of ['0', '-1', '1e9', 'x', '13'])
      expect(await screens.text(`messages/${id}?recipients=${odd}`)).toMatch(/page (?:1|12) of 12/)
  } finally {
    await world.close()
  }
})

test('a page of messages names the recipients whose destinations it has', async () => {
  const world = await ApiWorld.open('memory')
  try {
    const names = ['far.example', 'a.example.org']
    const to = Array.from({ length: 30 }, (_, n) => `user${n}@${n < 25 ? names[0] : names[1]}`)
    await world.queue.accept(to)
    await world.queue.advance(1_000)
    const listed = await new PageScreens(world).text('messages')
    expect(wholeWords(listed)).toMatch(/far\.example<\/a> <span class="faint">first 20 of 30 recipients/)
  } finally {
    await world.close()
  }
})
