/** A process that owns a queue until it is killed. */
import { takeOwnership } from '../../../src/store/folder/owner-lock.ts'

const owner = takeOwnership(process.argv[2] ?? '')
process.send?.('held')
// Keeps the ownership reachable: its lock ends when it is collected.
setInterval(() => owner, 1000)
