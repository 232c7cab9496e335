import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  expandScopes,
  fineScopes,
  hasScope,
  isAdministrator,
  permissionsOf,
  requiredScope,
  roleAllows,
  roles,
  scopeDescriptions,
  scopes,
  scopesOfRole,
  sessionScopes,
  type FineScope,
  type Role,
  type Scope,
} from './scopes.ts'

/** The fine scopes that each scope includes (spec 5.5, decision D71). */
const grants: Record<Scope, FineScope[]> = {
  'projects:read': ['projects:read'],
  'projects:write': ['projects:write'],
  'agents:read': ['agents:read'],
  'agents:write': ['agents:write', 'tasks:write', 'approvals:write'],
  'organizations:read': ['organizations:read'],
  'organizations:write': ['organizations:write'],
  'api_keys:read': ['api_keys:read'],
  'api_keys:write': ['api_keys:write'],
  'tasks:write': ['tasks:write'],
  'approvals:write': ['approvals:write'],
  'tools:execute': ['tools:execute'],
  'work:execute': ['work:execute'],
  read: ['projects:read', 'agents:read', 'organizations:read'],
  write: ['projects:write', 'agents:write', 'tasks:write', 'approvals:write'],
  admin: [
    'projects:read',
    'projects:write',
    'agents:read',
    'agents:write',
    'organizations:read',
    'organizations:write',
    'api_keys:read',
    'api_keys:write',
    'tasks:write',
    'approvals:write',
    'tools:execute',
    'work:execute',
  ],
}

/** What each role allows (decision D70). */
const allowed: Record<Role, FineScope[]> = {
  owner: grants.admin,
  admin: grants.admin,
  member: [
    'projects:read',
    'projects:write',
    'agents:read',
    'agents:write',
    'tasks:write',
    'organizations:read',
    'api_keys:read',
    'approvals:write',
    'tools:execute',
    'work:execute',
    'api_keys:write',
  ],
  viewer: ['projects:read', 'agents:read', 'organizations:read', 'api_keys:read', 'api_keys:write'],
}

describe('scopes', () => {
  it('scopes are the nine of the specification, read, write, tasks:write, approvals:write, tools:execute and work:execute, each described', () => {
    assert.deepEqual([...scopes].sort(), [
      'admin',
      'agents:read',
      'agents:write',
      'api_keys:read',
      'api_keys:write',
      'approvals:write',
      'organizations:read',
      'organizations:write',
      'projects:read',
      'projects:write',
      'read',
      'tasks:write',
      'tools:execute',
      'work:execute',
      'write',
    ])
    assert.deepEqual(Object.keys(scopeDescriptions).sort(), [...scopes].sort())
  })

  for (const scope of scopes) {
    it(`${scope} alone grants exactly ${grants[scope].join(', ')}`, () => {
      assert.deepEqual([...expandScopes([scope])].sort(), [...grants[scope]].sort())
      for (const fine of fineScopes) assert.equal(hasScope([scope], fine), grants[scope].includes(fine), fine)
    })
  }

  it('two scopes together grant exactly what either grants', () => {
    for (const one of scopes) {
      for (const other of scopes) {
        const both = new Set([...grants[one], ...grants[other]])
        assert.deepEqual([...expandScopes([one, other])].sort(), [...both].sort(), `${one} ${other}`)
      }
    }
  })

  it('scopes that are unknown grant nothing', () => {
    for (const unknown of [
      '',
      'agents',
      'agents:',
      'agents:*',
      '*',
      'ADMIN',
      'agents:write ',
      'agents:delete',
      'toString',
      '__proto__',
    ]) {
      assert.equal(expandScopes([unknown]).size, 0, unknown)
      for (const fine of fineScopes) assert.equal(hasScope([unknown], fine), false)
    }
    assert.equal(hasScope([], 'agents:read'), false)
  })

  it('a requirement of read, write or admin needs all scopes that it includes', () => {
    assert.equal(hasScope(['projects:read', 'agents:read', 'organizations:read'], 'read'), true)
    assert.equal(hasScope(['projects:read', 'agents:read'], 'read'), false)
    assert.equal(hasScope(['projects:write', 'agents:write'], 'write'), true)
    assert.equal(hasScope(['read', 'write'], 'admin'), false)
    assert.equal(hasScope([...fineScopes], 'admin'), false)
    assert.equal(hasScope(['admin'], 'admin'), true)
  })

  it('any write scope is one that ends in :write, or write, or admin (decision D72)', () => {
    for (const scope of scopes)
      assert.equal(
        hasScope([scope], 'any_write'),
        scope.endsWith(':write') || scope === 'write' || scope === 'admin',
        scope,
      )
    assert.equal(requiredScope('any_write'), 'write')
  })

  it('tasks are watched with agents:read or tasks:write', () => {
    for (const scope of scopes)
      assert.equal(
        hasScope([scope], 'watch_tasks'),
        grants[scope].includes('agents:read') || grants[scope].includes('tasks:write'),
        scope,
      )
    assert.equal(requiredScope('watch_tasks'), 'agents:read')
  })

  it('a required scope appears in errors under its own name', () => {
    for (const scope of scopes) assert.equal(requiredScope(scope), scope)
  })
})

describe('roles', () => {
  for (const role of roles) {
    it(`the role ${role} allows exactly the scopes of decision D70`, () => {
      assert.deepEqual([...scopesOfRole(role)].sort(), [...allowed[role]].sort())
      for (const fine of fineScopes) assert.equal(roleAllows(role, fine), allowed[role].includes(fine), fine)
      assert.equal(roleAllows(role, 'admin'), role === 'owner' || role === 'admin')
      assert.equal(roleAllows(role, 'read'), true)
      assert.equal(roleAllows(role, 'write'), role !== 'viewer')
      assert.equal(roleAllows(role, 'watch_tasks'), true)
      assert.equal(roleAllows(role, 'any_write'), true)
      assert.equal(roleAllows(role, null), true)
      assert.equal(isAdministrator(role), role === 'owner' || role === 'admin')
    })

    it(`a cookie of ${role} has every scope that the role allows`, () => {
      const held = sessionScopes(role)
      assert.deepEqual([...expandScopes(held)].sort(), [...allowed[role]].sort())
      assert.equal(held.includes('admin'), isAdministrator(role))
      assert.equal(hasScope(held, 'any_write'), true)
    })
  }
})

describe('permissions (decisions D70 and D75)', () => {
  for (const role of roles) {
    for (const scope of scopes) {
      it(`the scope ${scope} with the role ${role} permits what both allow`, () => {
        const may = (fine: FineScope): boolean => grants[scope].includes(fine) && allowed[role].includes(fine)
        assert.deepEqual(permissionsOf([scope], role), {
          projects: {
            read: may('projects:read'),
            write: may('projects:write'),
            delete: may('projects:write') && (role === 'owner' || role === 'admin'),
          },
          agents: { read: may('agents:read'), write: may('agents:write'), delete: may('agents:write') },
          organizations: { read: may('organizations:read'), write: may('organizations:write') },
          api_keys: { read: may('api_keys:read'), write: may('api_keys:write') },
        })
      })
    }
  }

  it('permissions of no scope are none', () => {
    const { projects, agents, organizations, api_keys } = permissionsOf([], 'owner')
    assert.deepEqual(
      [projects, agents, organizations, api_keys].flatMap((each) => Object.values(each)).filter(Boolean),
      [],
    )
  })
})
