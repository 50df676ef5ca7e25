/** An import that is killed loses nothing and repeats nothing, when it is called again. The long suite has more moments. */
import { expect, test } from 'vitest'
import { killAndRepeat } from '../support/killed-import.ts'

test('400 messages, killed during the commits', async () => {
  expect(await killAndRepeat([600_000])).toBe(1)
})
