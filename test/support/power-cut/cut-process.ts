/** A process that opens the disks of one recorded run and prints the report. Arguments: number of states, seed. */
import { powerCuts } from './replay.ts'

const [states = '0', seed = '1'] = process.argv.slice(2)
process.stdout.write(JSON.stringify(await powerCuts({ states: Number(states), seed: Number(seed) })))
