import { postgresKilled } from './f04-postgres-killed.ts'
import { poolExhausted } from './f08-pool-exhausted.ts'
import { shortTest } from './short.ts'

shortTest(postgresKilled)
shortTest(poolExhausted)
