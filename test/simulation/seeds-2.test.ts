import { testSeeds } from './seeds.ts'

testSeeds(301, 600, 60_000)
