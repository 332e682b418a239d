; C[M, N] = A[M, K]*B[K, N]: 16 x 16 threads, tiles of 32 x 32, two columns and two rows a thread, A and B in shared memory,
; the next tiles fetched while these are used
target triple = "nvptx64-nvidia-cuda"
@As = internal addrspace(3) global [2 x [32 x [32 x float]]] undef, align 16
@Bs = internal addrspace(3) global [2 x [32 x [32 x float]]] undef, align 16
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare void @llvm.nvvm.barrier0()
declare <2 x float> @llvm.fmuladd.v2f32(<2 x float>, <2 x float>, <2 x float>)
define internal void @fetch(ptr addrspace(1) %A, ptr addrspace(1) %B, i32 %N, i32 %K, i32 %row0, i32 %col0, i32 %k0, i32 %buf, i32 %r, i32 %c) {
  %row = add i32 %row0, %r
  %a0 = mul i32 %row, %K
  %kc = add i32 %k0, %c
  %a1 = add i32 %a0, %kc
  %pa = getelementptr float, ptr addrspace(1) %A, i32 %a1
  %a = load <4 x float>, ptr addrspace(1) %pa, align 16
  %sa = getelementptr [2 x [32 x [32 x float]]], ptr addrspace(3) @As, i32 0, i32 %buf, i32 %r, i32 %c
  store <4 x float> %a, ptr addrspace(3) %sa, align 16
  %kr = add i32 %k0, %r
  %b0 = mul i32 %kr, %N
  %cc = add i32 %col0, %c
  %b1 = add i32 %b0, %cc
  %pb = getelementptr float, ptr addrspace(1) %B, i32 %b1
  %b = load <4 x float>, ptr addrspace(1) %pb, align 16
  %sb = getelementptr [2 x [32 x [32 x float]]], ptr addrspace(3) @Bs, i32 0, i32 %buf, i32 %r, i32 %c
  store <4 x float> %b, ptr addrspace(3) %sb, align 16
  ret void
}
define internal <2 x float> @row_sum(<2 x float> %sum, i32 %buf, i32 %row, i32 %k, <2 x float> %b) {
  %p = getelementptr [2 x [32 x [32 x float]]], ptr addrspace(3) @As, i32 0, i32 %buf, i32 %row, i32 %k
  %a = load float, ptr addrspace(3) %p, align 4
  %v0 = insertelement <2 x float> poison, float %a, i32 0
  %v = insertelement <2 x float> %v0, float %a, i32 1
  %s = call <2 x float> @llvm.fmuladd.v2f32(<2 x float> %v, <2 x float> %b, <2 x float> %sum)
  ret <2 x float> %s
}
define ptx_kernel void @gemm(ptr addrspace(1) noalias readonly %A, ptr addrspace(1) noalias readonly %B, ptr addrspace(1) noalias %C, i32 %N, i32 %K) {
entry:
  %tx = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %ty = call i32 @llvm.nvvm.read.ptx.sreg.tid.y()
  %bx = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %by = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %row0 = shl i32 %by, 5
  %col0 = shl i32 %bx, 5
  %ty16 = shl i32 %ty, 4
  %t = add i32 %ty16, %tx
  %r = lshr i32 %t, 3
  %c0 = and i32 %t, 7
  %c = shl i32 %c0, 2
  %tx2 = shl i32 %tx, 1
  %ty2 = shl i32 %ty, 1
  %ty3 = or i32 %ty2, 1
  call void @fetch(ptr addrspace(1) %A, ptr addrspace(1) %B, i32 %N, i32 %K, i32 %row0, i32 %col0, i32 0, i32 0, i32 %r, i32 %c)
  call void @llvm.nvvm.barrier0()                               ; the first tiles are there
  br label %tile
tile:
  %k0 = phi i32 [ 0, %entry ], [ %k1, %next ]
  %buf = phi i32 [ 0, %entry ], [ %other, %next ]
  %u0 = phi <2 x float> [ zeroinitializer, %entry ], [ %v0, %next ]
  %u1 = phi <2 x float> [ zeroinitializer, %entry ], [ %v1, %next ]
  %other = xor i32 %buf, 1
  %k1 = add i32 %k0, 32
  %more = icmp slt i32 %k1, %K
  br i1 %more, label %ahead, label %use
ahead:
  call void @fetch(ptr addrspace(1) %A, ptr addrspace(1) %B, i32 %N, i32 %K, i32 %row0, i32 %col0, i32 %k1, i32 %other, i32 %r, i32 %c)
  br label %use
use:
  br label %step
step:
  %k = phi i32 [ 0, %use ], [ %k2, %step ]
  %s0 = phi <2 x float> [ %u0, %use ], [ %v0, %step ]
  %s1 = phi <2 x float> [ %u1, %use ], [ %v1, %step ]
  %pb = getelementptr [2 x [32 x [32 x float]]], ptr addrspace(3) @Bs, i32 0, i32 %buf, i32 %k, i32 %tx2
  %b = load <2 x float>, ptr addrspace(3) %pb, align 8
  %v0 = call <2 x float> @row_sum(<2 x float> %s0, i32 %buf, i32 %ty2, i32 %k, <2 x float> %b)
  %v1 = call <2 x float> @row_sum(<2 x float> %s1, i32 %buf, i32 %ty3, i32 %k, <2 x float> %b)
  %k2 = add i32 %k, 1
  %on = icmp ult i32 %k2, 32
  br i1 %on, label %step, label %next
next:
  call void @llvm.nvvm.barrier0()                               ; these tiles are used up, the next are there
  br i1 %more, label %tile, label %out
out:
  %row = add i32 %row0, %ty2
  %o0 = mul i32 %row, %N
  %col = add i32 %col0, %tx2
  %o1 = add i32 %o0, %col
  %q0 = getelementptr float, ptr addrspace(1) %C, i32 %o1
  store <2 x float> %v0, ptr addrspace(1) %q0, align 8
  %o2 = add i32 %o1, %N
  %q1 = getelementptr float, ptr addrspace(1) %C, i32 %o2
  store <2 x float> %v1, ptr addrspace(1) %q1, align 8
  ret void
}
!nvvm.annotations = !{!0}
!0 = !{ptr @gemm, !"kernel", i32 1, !"maxntidx", i32 256}
