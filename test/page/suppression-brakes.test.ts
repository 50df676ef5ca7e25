/** The screens about destinations at which no address is listed, and about entries that others stand beside. */
import { afterEach, expect, test } from 'vitest'
import { configFrom } from '../../src/config/load.ts'
import { ApiWorld } from '../support/api-world.ts'
import { PageScreens } from '../support/page-screens.ts'

let world: ApiWorld
afterEach(() => world.close())

const words = (markup: string): string => markup.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ')

test('a directory that is down: Now and Suppression name its destination, and that the list goes on by itself', async () => {
  const tables = { suppression: 'yes' }
  world = await ApiWorld.open('memory', configFrom(tables, 'relay.example'), tables)
  const screens = new PageScreens(world)
  expect(words(await screens.text('suppressions'))).not.toContain('No address at')
  await world.fill(20, 'unknown.example')
  const now = await screens.text('')
  expect(words(now)).toMatch(/no address at unknown\.example is listed/i)
  expect(now).toMatch(/unknown\.example is listed.*?href="\.\/suppressions"/s)
  const shown = words(await screens.text('suppressions'))
  expect(shown).toContain(
    'No address at unknown.example is listed, because more than a fifth of its recipients were refused as unknown within an hour. ' +
      'What was listed there within the hour was removed. It goes on by itself when they are fewer.',
  )
  expect(words(await screens.text('log?event=listing-braked&destination=unknown.example'))).toContain('1 warning')
  await world.queue.advance(2 * 3_600_000)
  expect(words(await screens.text('suppressions'))).not.toContain('No address at')
})

test('the question before a removal names the other entries that refuse the mail', async () => {
  const tables = { suppression: 'yes' }
  world = await ApiWorld.open('memory', configFrom(tables, 'relay.example'), tables)
  const add = (address: string, scope: string) => world.api.post('/suppressions', { address, scope, reason: 'manual' }, { as: 'admin' })
  for (const scope of ['*', 'us.example', 'them.example']) await add('bob@far.example', scope)
  await add('@far.example', '*')
  await add('ann@near.example', 'us.example')
  const asked = async (address: string, scope: string) =>
    words(
      await new PageScreens(world).text(`suppressions/remove?scope=${encodeURIComponent(scope)}&address=${encodeURIComponent(address)}`),
    )
  const ofScope = await asked('bob@far.example', 'us.example')
  expect(ofScope).toContain('Remove bob@far.example? Other entries still refuse mail to it. Refusals that were counted are forgotten.')
  expect(ofScope).toMatch(/still refused by bob@far\.example , senders: all @far\.example , senders: all undo/)
  expect(await asked('bob@far.example', '*')).toMatch(
    /still refused by bob@far\.example , senders: them\.example bob@far\.example , senders: us\.example/,
  )
  expect(await asked('ann@near.example', 'us.example')).toContain('Mail to it is accepted from then on. Refusals')
  const domain = await asked('@far.example', '*')
  expect(domain).toContain('Mail to its addresses is accepted from then on, unless they have entries of their own.')
})
