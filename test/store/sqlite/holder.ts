/**
 * A process that owns a queue until it is killed.
 */
import { takeOwnership } from '../../../src/store/owner-lock.ts'

takeOwnership(process.argv[2] ?? '')
process.send?.('held')
setInterval(() => undefined, 1000)
