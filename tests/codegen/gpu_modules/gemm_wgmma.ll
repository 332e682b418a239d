; C[M, N] f32 = A[M, K] bf16 * B[N, K]^T bf16: blocks of 64 x 16, slices of 64 by TMA with a swizzle of 128 bytes in a ring of
; two, sent by one thread and multiplied by the second warpgroup
target triple = "nvptx64-nvidia-cuda"
@dyn = external addrspace(3) global [0 x i8], align 1024       ; 2 x (A 8192 bytes, B 2048), then barriers: 2 full, 2 empty
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare void @llvm.nvvm.barrier0()
declare void @llvm.nvvm.setmaxnreg.inc.sync.aligned.u32(i32 immarg)
declare void @llvm.nvvm.setmaxnreg.dec.sync.aligned.u32(i32 immarg)
declare void @dev_mbar_init(ptr addrspace(3), i32)
declare void @dev_mbar_expect_tx(ptr addrspace(3), i32)
declare void @dev_mbar_arrive(ptr addrspace(3))
declare i32 @dev_mbar_try_wait(ptr addrspace(3), i32)
declare void @dev_fence_init()
declare void @dev_tma2d(ptr addrspace(3), ptr, i32, i32, ptr addrspace(3))
declare void @dev_wg_fence()
declare void @dev_wg_commit()
declare void @dev_wg_wait0()
declare { float, float, float, float, float, float, float, float } @dev_wg_done_n16_f32(float, float, float, float, float, float, float, float)
declare { float, float, float, float, float, float, float, float } @dev_wgmma_n16_bf16_t0(float, float, float, float, float, float, float, float, i64, i64)
define internal ptr addrspace(3) @stage(i32 %s) {
  %at = mul i32 %s, 10240
  %p = getelementptr i8, ptr addrspace(3) @dyn, i32 %at
  ret ptr addrspace(3) %p
}
define internal ptr addrspace(3) @full(i32 %s) {
  %o = shl i32 %s, 3
  %at = add i32 %o, 20480
  %p = getelementptr i8, ptr addrspace(3) @dyn, i32 %at
  ret ptr addrspace(3) %p
}
define internal ptr addrspace(3) @empty(i32 %s) {
  %o = shl i32 %s, 3
  %at = add i32 %o, 20496
  %p = getelementptr i8, ptr addrspace(3) @dyn, i32 %at
  ret ptr addrspace(3) %p
}
define internal void @wait(ptr addrspace(3) %b, i32 %parity) {
  br label %ask
ask:
  %r = call i32 @dev_mbar_try_wait(ptr addrspace(3) %b, i32 %parity)
  %no = icmp eq i32 %r, 0
  br i1 %no, label %ask, label %done
done:
  ret void
}
define internal i64 @descriptor(ptr addrspace(3) %p) {
  %a = ptrtoint ptr addrspace(3) %p to i32
  %low = and i32 %a, 262143
  %d = lshr i32 %low, 4
  %w = zext i32 %d to i64
  %r = or i64 %w, 4611686293305360384                           ; stride 1024, leading 16, swizzle of 128 bytes
  ret i64 %r
}
define ptx_kernel void @gemm(ptr byval([128 x i8]) align 64 %TA, ptr byval([128 x i8]) align 64 %TB, ptr addrspace(1) noalias %C, i32 %N, i32 %K) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %bx = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %by = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %row0 = shl i32 %by, 6
  %col0 = shl i32 %bx, 4
  %tiles = lshr i32 %K, 6
  %first = icmp eq i32 %t, 0
  %f0 = call ptr addrspace(3) @full(i32 0)
  %f1 = call ptr addrspace(3) @full(i32 1)
  %e0 = call ptr addrspace(3) @empty(i32 0)
  %e1 = call ptr addrspace(3) @empty(i32 1)
  br i1 %first, label %make, label %made
make:
  call void @dev_mbar_init(ptr addrspace(3) %f0, i32 1)
  call void @dev_mbar_init(ptr addrspace(3) %f1, i32 1)
  call void @dev_mbar_init(ptr addrspace(3) %e0, i32 1)
  call void @dev_mbar_init(ptr addrspace(3) %e1, i32 1)
  call void @dev_fence_init()
  br label %made
made:
  call void @llvm.nvvm.barrier0()
  %sends = icmp ult i32 %t, 128
  br i1 %sends, label %sender, label %receiver
sender:
  call void @llvm.nvvm.setmaxnreg.dec.sync.aligned.u32(i32 40)
  br i1 %first, label %send, label %done
send:
  %i = phi i32 [ 0, %sender ], [ %i1, %send ]
  %s = and i32 %i, 1
  %round = lshr i32 %i, 1
  %free0 = xor i32 %round, 1
  %free = and i32 %free0, 1
  %e = call ptr addrspace(3) @empty(i32 %s)
  %f = call ptr addrspace(3) @full(i32 %s)
  call void @wait(ptr addrspace(3) %e, i32 %free)
  call void @dev_mbar_expect_tx(ptr addrspace(3) %f, i32 10240)
  %sa = call ptr addrspace(3) @stage(i32 %s)
  %sb = getelementptr i8, ptr addrspace(3) %sa, i32 8192
  %k0 = shl i32 %i, 6
  call void @dev_tma2d(ptr addrspace(3) %sa, ptr %TA, i32 %k0, i32 %row0, ptr addrspace(3) %f)
  call void @dev_tma2d(ptr addrspace(3) %sb, ptr %TB, i32 %k0, i32 %col0, ptr addrspace(3) %f)
  %i1 = add i32 %i, 1
  %on = icmp ult i32 %i1, %tiles
  br i1 %on, label %send, label %done
receiver:
  call void @llvm.nvvm.setmaxnreg.inc.sync.aligned.u32(i32 232)
  %tw = and i32 %t, 127
  %leads = icmp eq i32 %tw, 0
  br label %tile
tile:
  %j = phi i32 [ 0, %receiver ], [ %j1, %given ]
  %c0 = phi float [ 0.0, %receiver ], [ %d0, %given ]
  %c1 = phi float [ 0.0, %receiver ], [ %d1, %given ]
  %c2 = phi float [ 0.0, %receiver ], [ %d2, %given ]
  %c3 = phi float [ 0.0, %receiver ], [ %d3, %given ]
  %c4 = phi float [ 0.0, %receiver ], [ %d4, %given ]
  %c5 = phi float [ 0.0, %receiver ], [ %d5, %given ]
  %c6 = phi float [ 0.0, %receiver ], [ %d6, %given ]
  %c7 = phi float [ 0.0, %receiver ], [ %d7, %given ]
  %u = and i32 %j, 1
  %half = lshr i32 %j, 1
  %there = and i32 %half, 1
  %ju = call ptr addrspace(3) @full(i32 %u)
  call void @wait(ptr addrspace(3) %ju, i32 %there)
  %ta = call ptr addrspace(3) @stage(i32 %u)
  %tb = getelementptr i8, ptr addrspace(3) %ta, i32 8192
  %da = call i64 @descriptor(ptr addrspace(3) %ta)
  %db = call i64 @descriptor(ptr addrspace(3) %tb)
  call void @dev_wg_fence()
  br label %slice
slice:
  %n = phi i64 [ 0, %tile ], [ %n2, %slice ]
  %g0 = phi float [ %c0, %tile ], [ %d0, %slice ]
  %g1 = phi float [ %c1, %tile ], [ %d1, %slice ]
  %g2 = phi float [ %c2, %tile ], [ %d2, %slice ]
  %g3 = phi float [ %c3, %tile ], [ %d3, %slice ]
  %g4 = phi float [ %c4, %tile ], [ %d4, %slice ]
  %g5 = phi float [ %c5, %tile ], [ %d5, %slice ]
  %g6 = phi float [ %c6, %tile ], [ %d6, %slice ]
  %g7 = phi float [ %c7, %tile ], [ %d7, %slice ]
  %xa = add i64 %da, %n
  %xb = add i64 %db, %n
  %d = call { float, float, float, float, float, float, float, float } @dev_wgmma_n16_bf16_t0(float %g0, float %g1, float %g2, float %g3, float %g4, float %g5, float %g6, float %g7, i64 %xa, i64 %xb)
  %d0 = extractvalue { float, float, float, float, float, float, float, float } %d, 0
  %d1 = extractvalue { float, float, float, float, float, float, float, float } %d, 1
  %d2 = extractvalue { float, float, float, float, float, float, float, float } %d, 2
  %d3 = extractvalue { float, float, float, float, float, float, float, float } %d, 3
  %d4 = extractvalue { float, float, float, float, float, float, float, float } %d, 4
  %d5 = extractvalue { float, float, float, float, float, float, float, float } %d, 5
  %d6 = extractvalue { float, float, float, float, float, float, float, float } %d, 6
  %d7 = extractvalue { float, float, float, float, float, float, float, float } %d, 7
  %n2 = add i64 %n, 2
  %again = icmp ult i64 %n2, 8
  br i1 %again, label %slice, label %sent
sent:
  call void @dev_wg_commit()
  call void @dev_wg_wait0()
  br i1 %leads, label %give, label %given
give:
  %je = call ptr addrspace(3) @empty(i32 %u)
  call void @dev_mbar_arrive(ptr addrspace(3) %je)
  br label %given
given:
  %j1 = add i32 %j, 1
  %more = icmp ult i32 %j1, %tiles
  br i1 %more, label %tile, label %out
out:
  %e8 = call { float, float, float, float, float, float, float, float } @dev_wg_done_n16_f32(float %d0, float %d1, float %d2, float %d3, float %d4, float %d5, float %d6, float %d7)
  %s0 = extractvalue { float, float, float, float, float, float, float, float } %e8, 0
  %s1 = extractvalue { float, float, float, float, float, float, float, float } %e8, 1
  %s2 = extractvalue { float, float, float, float, float, float, float, float } %e8, 2
  %s3 = extractvalue { float, float, float, float, float, float, float, float } %e8, 3
  %s4 = extractvalue { float, float, float, float, float, float, float, float } %e8, 4
  %s5 = extractvalue { float, float, float, float, float, float, float, float } %e8, 5
  %s6 = extractvalue { float, float, float, float, float, float, float, float } %e8, 6
  %s7 = extractvalue { float, float, float, float, float, float, float, float } %e8, 7
  %w = lshr i32 %tw, 5
  %w16 = shl i32 %w, 4
  %lane = and i32 %t, 31
  %g = lshr i32 %lane, 2
  %q = and i32 %lane, 3
  %q2 = shl i32 %q, 1
  %r0 = add i32 %row0, %w16
  %r1 = add i32 %r0, %g
  %o0 = mul i32 %r1, %N
  %o1 = add i32 %o0, %col0
  %o2 = add i32 %o1, %q2
  %N8 = shl i32 %N, 3
  %o3 = add i32 %o2, %N8
  %p0 = getelementptr float, ptr addrspace(1) %C, i32 %o2
  %p1 = getelementptr float, ptr addrspace(1) %C, i32 %o3
  store float %s0, ptr addrspace(1) %p0
  %p01 = getelementptr float, ptr addrspace(1) %p0, i32 1
  store float %s1, ptr addrspace(1) %p01
  store float %s2, ptr addrspace(1) %p1
  %p11 = getelementptr float, ptr addrspace(1) %p1, i32 1
  store float %s3, ptr addrspace(1) %p11
  %p08 = getelementptr float, ptr addrspace(1) %p0, i32 8
  store float %s4, ptr addrspace(1) %p08
  %p09 = getelementptr float, ptr addrspace(1) %p0, i32 9
  store float %s5, ptr addrspace(1) %p09
  %p18 = getelementptr float, ptr addrspace(1) %p1, i32 8
  store float %s6, ptr addrspace(1) %p18
  %p19 = getelementptr float, ptr addrspace(1) %p1, i32 9
  store float %s7, ptr addrspace(1) %p19
  br label %done
done:
  ret void
}
!nvvm.annotations = !{!0}
!0 = !{ptr @gemm, !"kernel", i32 1, !"maxntidx", i32 256}
