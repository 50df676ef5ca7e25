import { test } from 'vitest'
import { deliverToMany } from '../support/many-recipients.ts'

// 100,000 in test/long.
test('a message to 20,000 recipients is delivered in batches, and does not delay a small one', () => deliverToMany(20_000))
