import { postgresKilled } from './f04-postgres-killed.ts'
import { shortTest } from './short.ts'

shortTest(postgresKilled)
